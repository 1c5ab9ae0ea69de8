// How long to wait before the next try, in milliseconds: twice as long after each failure, 30 s at
// most, and different for each browser. `random` is from 0 to 1.
export function pause(failures: number, random: number): number {
  const longest = Math.min(1000 * 2 ** failures, 30_000);
  return longest / 2 + (longest / 2) * random;
}
