import sparticuz from "@sparticuz/chromium";
import { type Browser, chromium } from "playwright-core";

/**
 * Starts a Chromium: the one that CHROME_PATH names, or the one from npm. Returns the reason if no browser can be started. Its flags leave the
 * web's security as it is: those that the package proposes take away the Origin of requests.
 */
export async function startBrowser(): Promise<Browser | { readonly absent: string }> {
  try {
    const executablePath = process.env.CHROME_PATH ?? (await sparticuz.executablePath());
    return await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], headless: true });
  } catch (error) {
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split("\n");
    return { absent: `no browser can be started, so nothing is tested in one (CHROME_PATH names another): ${why}` };
  }
}
