import { expect, test } from "vitest";
import { lines, patch, values } from "./change";
import { type Schema, parameters } from "./schema";

const schema: Schema = {
  properties: {
    region: { type: "string" },
    nodes: { type: "integer" },
    ssh: { properties: { keys: { type: "array" }, cidrs: { type: "array" } } },
  },
};
const now = { region: "a", nodes: 2, ssh: { keys: ["x", "y"], cidrs: ["z"] } };

test("a form that nobody touched changes nothing", () => {
  const shown = values(schema, now);
  expect(shown["/ssh/keys"]).toBe("x\ny");
  expect(patch(now, parameters(schema, shown))).toEqual({});
});

test("only what a person changed is sent, and what they emptied is taken out", () => {
  const shown = { ...values(schema, now), "/nodes": "3", "/ssh/cidrs": "", "/region": "" };
  const change = patch(now, parameters(schema, shown));
  expect(change).toEqual({ region: null, nodes: 3, ssh: { cidrs: null } });
  expect(lines(change)).toEqual([
    "    # region: remove this line",
    "    nodes: 3",
    "    ssh:",
    "      # cidrs: remove this line",
  ]);
});
