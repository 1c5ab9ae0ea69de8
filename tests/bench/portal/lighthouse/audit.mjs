// Audits a page by Lighthouse as a person who is signed in. Standard input has the question: the address, the form
// of the device, the categories, the session's cookies, and the browser. The scores are on standard output.
import { text } from "node:stream/consumers";
import lighthouse, { desktopConfig } from "lighthouse";
import puppeteer from "puppeteer-core";

const { address, form, categories, cookie, program } = JSON.parse(await text(process.stdin));
const browser = await puppeteer.launch({
  executablePath: program,
  // The benchmark runs as root, and its certificate authority is not one of the system.
  args: ["--no-sandbox"],
  acceptInsecureCerts: true,
});
try {
  const page = await browser.newPage();
  const cookies = cookie.split("; ").map((pair) => {
    const end = pair.indexOf("=");
    const [name, value] = [pair.slice(0, end), pair.slice(end + 1)];
    return { name, value, url: address, secure: true, path: "/" };
  });
  await browser.setCookie(
    ...cookies.map(({ url, ...one }) => ({ ...one, domain: new URL(url).hostname })),
  );
  const flags = {
    logLevel: "error",
    onlyCategories: categories,
    // Cookies are storage, too.
    disableStorageReset: true,
  };
  const config = form === "desktop" ? desktopConfig : undefined;
  const { lhr } = await lighthouse(address, flags, config, page);
  if (lhr.runtimeError) throw new Error(lhr.runtimeError.message);
  const scores = Object.entries(lhr.categories).map(([name, { score }]) => [name, score * 100]);
  const lost = Object.values(lhr.audits).filter(({ score }) => score !== null && score < 1);
  for (const { id, score, displayValue } of lost) console.error(address, form, id, score, displayValue ?? "");
  console.log(JSON.stringify(Object.fromEntries(scores)));
} finally {
  await browser.close();
}
