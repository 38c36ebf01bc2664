import { readFile, stat } from 'node:fs/promises'
import { setTimeout } from 'node:timers/promises'
import type { Browser, BrowserContext, Dialog, Download, Locator, Page } from 'playwright-core'
import { describeCause, Failure } from '../../base/core/failure.ts'
import { fixedPage } from './fixed.ts'
import type { Network } from './network.ts'
import { makeTab, type Tab, windowOf } from './tab.ts'

/** How the pages of a world are shown and bounded. */
export interface SessionOptions {
  readonly seed: number
  /** Characters of a page that are shown at a time. */
  readonly characters: number
  /** Seconds that an action may take. */
  readonly seconds: number
  /** Most pictures that are kept of the attempt. */
  readonly screenshots: number
}

/** A file that a page gave. */
export interface Downloaded {
  readonly name: string
  readonly bytes: number
  /** Its content, if it is short and text. */
  readonly text?: string
}

/** What a page looked like after an action; before the first one, `turn` is -1. */
export interface Screenshot {
  readonly turn: number
  readonly type: 'image/jpeg'
  /** Base64. */
  readonly data: string
}

/** A page as code of an environment may ask it. */
export interface WebPage {
  readonly url: string
  readonly title: string
  /** Evaluates an expression of JavaScript in the page; gives plain JSON. */
  evaluate(expression: string): Promise<unknown>
}

const viewport = { width: 1024, height: 768 }
const most = { tabs: 8, downloads: 16, downloadBytes: 2 ** 20, pictureBytes: 2 ** 17, notes: 20 }
/** Milliseconds that a page may go on changing after an action before it is read as it is. */
const restless = 3000

/** The tabs of one attempt: what is seen of them, and what can be done with them. */
export class Session {
  readonly downloads: Downloaded[] = []
  readonly screenshots: Screenshot[] = []
  readonly #context: BrowserContext
  readonly #network: Network
  readonly #options: SessionOptions
  readonly #tabs: Tab[] = []
  #shown: Tab | undefined
  /** What happened beside the page since it was last read. */
  #notes: string[] = []
  /** Downloads that are not there yet. */
  #pending = 0
  /** Downloads that are there and being read. */
  #reading = 0
  #broken: string | undefined

  private constructor(context: BrowserContext, network: Network, options: SessionOptions) {
    this.#context = context
    this.#network = network
    this.#options = options
  }

  /** Opens a browser's tabs for one attempt, with a network of its own and nothing kept from others. */
  static async open(browser: Browser, network: Network, options: SessionOptions): Promise<Session> {
    const context = await browser.newContext({
      viewport,
      proxy: { server: network.url },
      serviceWorkers: 'block',
      locale: 'en-US',
      timezoneId: 'UTC',
      reducedMotion: 'reduce',
    })
    const session = new Session(context, network, options)
    await context.addInitScript(fixedPage(options.seed))
    context.setDefaultTimeout(options.seconds * 1000)
    session.#listen()
    return session
  }

  #listen(): void {
    this.#context.on('close', () => this.#broke('the browser ended'))
    this.#context.on('page', page => this.#adopt(page))
  }

  #broke(why: string): void {
    this.#broken ??= why
  }

  #adopt(page: Page): void {
    if (this.#tabs.length === most.tabs) {
      this.#note(`another tab was closed at once: ${most.tabs} are open.`)
      void page.close().catch(() => undefined)
      return
    }
    const tab = makeTab(page)
    this.#tabs.push(tab)
    this.#shown = tab
    page.on('crash', () => this.#broke('a page crashed'))
    page.on('dialog', dialog => void this.#answer(dialog))
    page.on('download', download => void this.#keep(download))
    page.on('close', () => {
      this.#tabs.splice(this.#tabs.indexOf(tab), 1)
      if (this.#shown === tab) this.#shown = this.#tabs.at(-1)
    })
  }

  #note(text: string): void {
    if (this.#notes.length < most.notes) this.#notes.push(text)
  }

  async #answer(dialog: Dialog): Promise<void> {
    const asked = JSON.stringify(dialog.message().slice(0, 500))
    this.#note(`the page said ${asked} (${dialog.type()}), and was answered OK.`)
    await dialog.accept().catch(() => undefined)
  }

  async #keep(download: Download): Promise<void> {
    this.#pending++
    try {
      const name = download.suggestedFilename().slice(0, 100)
      const path = await download.path()
      const { size } = await stat(path)
      const isOneTooMany = this.downloads.length + this.#reading >= most.downloads
      if (isOneTooMany || size > most.downloadBytes) {
        this.#note(`${name} (${size} bytes) was not kept: it is too large, or one too many.`)
        return
      }
      this.#reading++
      const bytes = await readFile(path).finally(() => this.#reading--)
      const text = textOf(bytes)
      this.downloads.push({ name, bytes: bytes.length, ...(text !== undefined && { text }) })
      this.#note(`downloaded ${name} (${bytes.length} bytes).`)
    } catch (cause) {
      this.#note(`a download failed: ${firstLine(cause)}`)
    } finally {
      // It takes room on the disk until then.
      await download.delete().catch(() => undefined)
      this.#pending--
    }
  }

  /** The page that is shown. */
  get page(): WebPage {
    const tab = this.#tab()
    return {
      url: tab.page.url(),
      title: tab.title,
      evaluate: expression => this.#guard(() => tab.page.evaluate(expression)),
    }
  }

  #tab(): Tab {
    if (this.#shown) return this.#shown
    throw new Failure('environment', { cause: new Error('no tab is open any more') })
  }

  /** Goes to an address, in a new tab if none is open. */
  async go(url: string): Promise<void> {
    const page = this.#shown?.page ?? (await this.#guard(() => this.#context.newPage()))
    await this.#guard(() => page.goto(url, { waitUntil: 'domcontentloaded' }))
  }

  /** Does something with an element that the page was last shown with. */
  async at(ref: string, work: (element: Locator) => Promise<unknown>): Promise<void> {
    const { page } = this.#tab()
    const element = page.getByRef(ref)
    const isThere = /^(f\d+)?e\d+$/.test(ref) && (await this.#guard(() => element.count())) > 0
    if (!isThere) throw new Error(`nothing on this page has the reference ${ref.slice(0, 20)}`)
    await this.#guard(() => work(element))
  }

  /** Does something with the page as a whole. */
  async on(work: (page: Page) => Promise<unknown>): Promise<void> {
    const { page } = this.#tab()
    await this.#guard(() => work(page))
  }

  /** Shows another part of a long page. */
  async scroll(direction: 'down' | 'up'): Promise<void> {
    const tab = this.#tab()
    const step = direction === 'down' ? 1 : -1
    tab.part = Math.max(0, tab.part + step)
    await this.#guard(() => tab.page.mouse.wheel(0, step * viewport.height))
  }

  /** Shows the tab of that number, from 1. */
  async show(number: number): Promise<void> {
    const tab = this.#tabs[number - 1]
    if (!tab) throw new Error(`there is no tab ${number}; tabs: 1 to ${this.#tabs.length}`)
    this.#shown = tab
    await this.#guard(() => tab.page.bringToFront())
  }

  async close(): Promise<void> {
    if (this.#tabs.length === 1) throw new Error('this is the only tab')
    await this.#guard(() => this.#tab().page.close())
  }

  /** Does something; if it fails, the page comes to rest before that is told. */
  async do(work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (cause) {
      await this.#tree()
      throw cause
    }
  }

  /** The page once it has come to rest: its address, and its accessibility tree with references. */
  async read(turn: number): Promise<string> {
    const tree = await this.#tree()
    const tab = this.#tab()
    tab.title = await this.#guard(() => tab.page.title())
    await this.#picture(tab, turn)
    const head = [`Page: ${tab.title.slice(0, 200)} (${tab.page.url().slice(0, 500)})`]
    if (this.#tabs.length > 1)
      head.push(`Tabs: ${this.#tabs.map((each, index) => this.#listed(each, index)).join(', ')}`)
    head.push(...this.#notes.map(note => `Note: ${note}`))
    this.#notes = []
    return `${head.join('\n')}\n\n${windowOf(tab, tree, this.#options.characters)}`
  }

  #listed(tab: Tab, index: number): string {
    const name = JSON.stringify(tab.title.slice(0, 60))
    return tab === this.#shown ? `[${index + 1} ${name}]` : `${index + 1} ${name}`
  }

  /** The page at rest. References are those of the latest reading, so each of a page has to be of this kind in the end. */
  async #tree(): Promise<string> {
    await this.#settle()
    return await this.#guard(() => this.#tab().page.ariaSnapshot({ mode: 'ai' }))
  }

  /** Waits until nothing is loaded any more and the page reads alike twice. */
  async #settle(): Promise<void> {
    const until = performance.now() + restless
    let before: string | undefined
    while (performance.now() < until) {
      const { page } = this.#tab()
      // While a page is being left, it cannot be read.
      const now = await page.ariaSnapshot().catch(() => undefined)
      if (now === undefined) await this.#guard(() => page.waitForLoadState('domcontentloaded'))
      else if (now === before && !this.#isLoading()) return
      before = now
      await setTimeout(50)
    }
    if (before !== undefined) return
    this.#broke('the page does not answer any more')
    throw this.#failed(undefined)
  }

  #isLoading(): boolean {
    return this.#network.loading() > 0 || this.#pending > 0
  }

  async #picture(tab: Tab, turn: number): Promise<void> {
    if (this.screenshots.length >= this.#options.screenshots) return
    for (const quality of [60, 20]) {
      const picture = await this.#guard(() => tab.page.screenshot({ type: 'jpeg', quality }))
      if (picture.length > most.pictureBytes) continue
      const data = picture.toString('base64')
      this.screenshots.push({ turn, type: 'image/jpeg', data })
      return
    }
  }

  /** What went wrong with the browser fails the attempt; what went wrong with the page is told. */
  async #guard<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      throw this.#failed(cause)
    }
  }

  #failed(cause: unknown): Error {
    if (this.#broken) return new Failure('environment', { cause: new Error(this.#broken) })
    return new Error(firstLine(cause), { cause })
  }

  async dispose(): Promise<void> {
    await this.#context.close().catch(() => undefined)
  }
}

/** Playwright's reason without its log, whose times differ from replay to replay. */
function firstLine(cause: unknown): string {
  const [first = ''] = (cause instanceof Error ? cause.message : describeCause(cause)).split('\n')
  return first.replace(/^\w+\.\w+: /, '').slice(0, 300)
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.length > 10_000) return undefined
  const text = bytes.toString('utf8')
  return text.includes('\uFFFD') ? undefined : text
}
