// The name that known_hosts has for a workspace: the address to which its line connects. A line of devctl has
// no address, and devctl names workspaces NAME.ws.
export function knownHost(name: string, line: string): string {
  return /^ssh \S+@(\S+)$/.exec(line)?.[1] ?? `${name}.ws`;
}
