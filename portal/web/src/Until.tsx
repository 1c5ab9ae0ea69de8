import { useEffect, useState } from "react";
import { text } from "./text";

const MINUTE = 60_000;

// A time that is to come, with what is left until then.
export function Until({ time }: { time: string }) {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), MINUTE / 2);
    return () => clearInterval(timer);
  }, []);
  return (
    <time dateTime={time} title={new Date(time).toLocaleString()}>
      {left(new Date(time).getTime() - now)}
    </time>
  );
}

// "in 1 h 52 min", from milliseconds.
export function left(milliseconds: number): string {
  const minutes = Math.floor(milliseconds / MINUTE);
  if (minutes < 1) return text.now;
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor((minutes % 1440) / 60)];
  if (days > 0) return text.inTime(`${days} d ${hours} h`);
  if (hours > 0) return text.inTime(`${hours} h ${minutes % 60} min`);
  return text.inTime(`${minutes} min`);
}
