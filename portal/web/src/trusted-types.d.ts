// Trusted Types (W3C), as far as the portal uses them.
interface TrustedScriptURL {
  toString(): string;
}
interface Window {
  trustedTypes?: {
    createPolicy(
      name: string,
      rules: { createScriptURL: (address: string) => string },
    ): { createScriptURL: (address: string) => TrustedScriptURL };
  };
}
