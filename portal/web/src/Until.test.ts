import { expect, test } from "vitest";
import { left } from "./Until";

test("a person reads how long a workspace still runs", () => {
  const minute = 60_000;
  expect(left(30_000)).toBe("now");
  expect(left(-minute)).toBe("now");
  expect(left(59 * minute)).toBe("in 59 min");
  expect(left(112 * minute)).toBe("in 1 h 52 min");
  expect(left(1440 * minute + 61 * minute)).toBe("in 1 d 1 h");
});
