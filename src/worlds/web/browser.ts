import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Browser, LaunchOptions } from 'playwright-core'
import { describeCause } from '../../base/core/failure.ts'
import { missingPackage } from '../../base/core/names/missing-package.ts'

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome']

/** Pages reach nothing but their proxy: no packets past it, and nothing that a browser asks by itself. */
const closed = [
  '--disable-gpu',
  '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
  '--disable-background-networking',
  '--font-render-hinting=none',
]

/** A Chromium of the system, if there is one. */
function systemBrowser(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return folders.flatMap(folder => names.map(name => join(folder, name))).find(existsSync)
}

/** Whether the browser's own sandbox can stand: Chromium refuses to build it for root. */
export const hasOwnSandbox = process.getuid?.() !== 0

/**
 * The browser that `path` or `ESPALIER_BROWSER` names, else a Chromium of the system, else the one that
 * the package @sparticuz/chromium carries.
 */
async function launchOptions(path: string | undefined): Promise<LaunchOptions> {
  const named = path ?? process.env.ESPALIER_BROWSER ?? systemBrowser()
  if (named !== undefined)
    return { executablePath: named, args: [...closed], chromiumSandbox: hasOwnSandbox }
  const carried = await import('@sparticuz/chromium').catch(cause => {
    throw missingPackage(
      'a browser (no Chromium is in PATH, and `browser=` names none)',
      '@sparticuz/chromium',
      cause,
    )
  })
  const executablePath = await carried.default.executablePath()
  return { executablePath, args: [...closed], chromiumSandbox: false }
}

/** Starts a Chromium; its pages are closed with it, and it ends with this process. */
export async function openBrowser(path?: string): Promise<Browser> {
  const { chromium } = await import('playwright-core').catch(cause => {
    throw missingPackage('a web environment', 'playwright-core', cause)
  })
  const options = await launchOptions(path)
  try {
    return await chromium.launch(options)
  } catch (cause) {
    const first = describeCause(cause).split('\n').slice(0, 3).join(' ')
    throw new Error(`the browser ${options.executablePath} did not start: ${first}`, { cause })
  }
}

/** One browser for all worlds of a process, started when it is first needed and again after it died. */
export interface BrowserLease extends AsyncDisposable {
  get(): Promise<Browser>
}

class SharedBrowser {
  holders = 0
  readonly #path: string | undefined
  #opening: Promise<Browser> | undefined

  constructor(path: string | undefined) {
    this.#path = path
  }

  async get(): Promise<Browser> {
    this.#opening ??= openBrowser(this.#path)
    const opening = this.#opening
    const browser = await opening.catch(cause => {
      this.#forget(opening)
      throw cause
    })
    if (browser.isConnected()) return browser
    this.#forget(opening)
    return await this.get()
  }

  #forget(opening: Promise<Browser>): void {
    if (this.#opening === opening) this.#opening = undefined
  }

  async close(): Promise<void> {
    const browser = await this.#opening?.catch(() => undefined)
    this.#opening = undefined
    await browser?.close()
  }
}

const shared = new Map<string | undefined, SharedBrowser>()

/** A share of the browser of that path; it is closed when nobody holds one any more. */
export function leaseBrowser(path: string | undefined): BrowserLease {
  const browser = shared.get(path) ?? new SharedBrowser(path)
  shared.set(path, browser)
  browser.holders++
  let isHeld = true
  return {
    get: () => browser.get(),
    async [Symbol.asyncDispose]() {
      if (!isHeld) return
      isHeld = false
      if (--browser.holders > 0) return
      shared.delete(path)
      await browser.close()
    },
  }
}
