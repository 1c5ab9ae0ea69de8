import { expect, test } from "vitest";
import { type Schema, complaints, elsewhere, parameters, pointers, summary, title } from "./schema";

const schema: Schema = {
  properties: {
    region: { type: "string" },
    contrib: { type: "boolean" },
    ssh: { properties: { "allowed/Cidrs": { type: "array", items: { type: "string" } } } },
    distributed: { properties: { nodes: { type: "integer" } } },
  },
};

test("only what a person wrote is sent, in the type of its field", () => {
  const values = {
    "/region": " eu-west-1 ",
    "/contrib": "false",
    "/ssh/allowed~1Cidrs": "10.0.0.0/8\n\n 192.0.2.0/24 ",
    "/distributed/nodes": "3",
  };
  expect(parameters(schema, values)).toEqual({
    region: "eu-west-1",
    contrib: false,
    ssh: { "allowed/Cidrs": ["10.0.0.0/8", "192.0.2.0/24"] },
    distributed: { nodes: 3 },
  });
  expect(parameters(schema, { "/region": "", "/ssh/allowed~1Cidrs": "\n" })).toEqual({});
  expect(parameters(schema, { "/distributed/nodes": "many" })).toEqual({
    distributed: { nodes: "many" },
  });
});

test("an error is at its field, or at the field that it is in, and never lost", () => {
  const errors = [
    { pointer: "/ssh/allowed~1Cidrs/1", detail: "is too wide" },
    { pointer: "/region", detail: "is unknown" },
    { pointer: "/regional", detail: "is another field" },
  ];
  expect(complaints(errors, "/ssh/allowed~1Cidrs")).toEqual(["is too wide"]);
  expect(complaints(errors, "/region")).toEqual(["is unknown"]);
  expect(pointers(schema, "")).toEqual([
    "/region",
    "/contrib",
    "/ssh/allowed~1Cidrs",
    "/distributed/nodes",
  ]);
  expect(elsewhere(errors, pointers(schema, ""))).toEqual(["is another field"]);
});

test("a field is told in words", () => {
  const spellings = { cidrs: "CIDRs", opencv: "OpenCV", gib: "GiB" };
  expect(title("stopAfterIdle", spellings)).toBe("Stop after idle");
  expect(title("allowedCidrs", spellings)).toBe("Allowed CIDRs");
  expect(title("opencvVersion", spellings)).toBe("OpenCV version");
  expect(title("sizeGiB", spellings)).toBe("Size GiB");
  expect(summary("AWS region, for example `eu-west-1`.\nIt is\nkept. More.")).toBe(
    "AWS region, for example eu-west-1.",
  );
  expect(summary("No end")).toBe("No end");
  expect(summary(undefined)).toBe("");
});
