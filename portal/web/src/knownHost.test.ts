import { expect, test } from "vitest";
import { knownHost } from "./knownHost";

test("ssh finds the host key under the address that the line has", () => {
  expect(knownHost("vision", "ssh developer@203.0.113.7")).toBe("203.0.113.7");
  expect(knownHost("vision", "devctl ssh vision --namespace dev-alice")).toBe("vision.ws");
});
