import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { type Browser, chromium } from 'playwright-core'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']

/** A Chromium of the system, where there is one. */
function systemBrowser(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap(folder => names.map(name => join(folder, name))).find(existsSync)
}

/**
 * Opens the browser that `ESPALIER_BROWSER` names, else a Chromium of the system, else the one that
 * a package carries, so that nothing but `npm ci` is needed.
 */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env.ESPALIER_BROWSER ?? systemBrowser()
  if (executablePath !== undefined) return await chromium.launch({ executablePath })
  const { default: carried } = await import('@sparticuz/chromium')
  // Not the package's own arguments, which switch off what is tested here.
  const args = ['--no-sandbox', '--disable-gpu']
  return await chromium.launch({ executablePath: await carried.executablePath(), args })
}
