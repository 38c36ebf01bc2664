import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Browser, Page } from 'playwright-core'
import { start } from '../end-to-end/cli.ts'

/** A page that is being served. */
export interface Viewing extends AsyncDisposable {
  readonly url: string
}

/** Serves runs with the built program, as a person would. */
export async function view(
  words: readonly string[],
  options: Parameters<typeof start>[1] = {},
): Promise<Viewing> {
  const { child, finished } = start(['view', ...words, '--port', '0', '--json'], options)
  const lines = createInterface({ input: child.stdout! })
  const [line] = (await Promise.race([
    once(lines, 'line'),
    finished.then(({ stderr }) => Promise.reject(new Error(stderr))),
  ])) as [string]
  const { url } = JSON.parse(line) as { readonly url: string }
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGINT')
      await finished
    },
  }
}

/** A page that notes what it should never do. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page
  /** Errors, refusals of the content security policy, and requests to anywhere else. */
  readonly problems: readonly string[]
}

/** Opens a page; requests that leave `origin` are noted and refused. */
export async function openPage(
  browser: Browser,
  origin: string,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<WatchedPage> {
  const viewport = { width: 1360, height: 880 }
  const context = await browser.newContext({ locale: 'en-US', viewport, ...options })
  const problems: string[] = []
  await context.route('**/*', async route => {
    const url = route.request().url()
    if (url.startsWith(origin) || /^data:(font|image)\//.test(url)) return await route.continue()
    problems.push(`asked for ${url}`)
    await route.abort()
  })
  const page = await context.newPage()
  // So long that only a test that never ends runs into it, however busy the machine is.
  page.setDefaultTimeout(40_000)
  page.on('pageerror', error => problems.push(`error: ${error.message}`))
  page.on('dialog', async dialog => {
    problems.push(`dialog: ${dialog.message()}`)
    await dialog.dismiss()
  })
  page.on('console', message => {
    if (message.type() === 'error') problems.push(`console: ${message.text()}`)
  })
  return { page, problems, [Symbol.asyncDispose]: () => context.close() }
}

const folder = process.env.ESPALIER_SCREENSHOTS

/** Whether pictures for the pages are being taken. */
export const takesPictures = folder !== undefined

/** Takes a picture for the documentation, where pictures are wanted: `npm run screenshots`. */
export async function picture(page: Page, name: string, height = 880): Promise<void> {
  if (folder === undefined) return
  await page.setViewportSize({ width: 1360, height })
  mkdirSync(folder, { recursive: true })
  await page.mouse.move(0, 0)
  await page.evaluate('document.fonts.ready.then(() => true)')
  const session = await page.context().newCDPSession(page)
  const { data } = await session.send('Page.captureScreenshot', { format: 'webp', quality: 82 })
  writeFileSync(join(folder, `${name}.webp`), Buffer.from(data, 'base64'))
  await session.detach()
}
