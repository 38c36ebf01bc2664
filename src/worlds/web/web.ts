import type { Environment, MadeTask, MakeTasksOptions } from '../../base/core/environment.ts'
import type { RewardPart } from '../../base/core/reward.ts'
import type { StandardSchema } from '../../base/core/tool.ts'
import { environment } from '../../engine/environments/environment.ts'
import type { OpenedWorld, OpenWorldCall } from '../../engine/environments/opened-world.ts'
import { hasOwnSandbox, leaseBrowser } from './browser.ts'
import { openNetwork, type Reach } from './network.ts'
import { type Downloaded, type Screenshot, Session, type WebPage } from './session.ts'
import { webTools } from './tools.ts'

/** How browsers are opened and pages shown. */
export interface WebOptions {
  /** The program of a Chromium. @default the one of `ESPALIER_BROWSER`, of PATH, or of @sparticuz/chromium */
  readonly browser?: string | undefined
  /** Most pictures of pages that are kept with an attempt. @default 0 */
  readonly screenshots?: number | undefined
  /** Characters of a page that are shown at a time. @default 12000 */
  readonly characters?: number | undefined
  /** Seconds that an action may take. @default 5 */
  readonly seconds?: number | undefined
}

/** The web as one attempt finds it. */
export interface WebWorld<Site> extends Partial<Reach> {
  /** What is to be done: a text, or what the first page says. */
  readonly goal: string | ((page: WebPage) => Promise<string>)
  /** The address of the first page. */
  readonly start: string
  /** Asked after every action, before `isOver`. */
  look?(page: WebPage): Promise<void>
  isOver?(): boolean
  /** Plain JSON about the final state of the site. */
  report?(): Site | Promise<Site>
  dispose?(): void | PromiseLike<void>
}

/** What rewards see of an attempt. */
export interface WebReport<Site> {
  readonly site: Site
  /** The page that was shown last. */
  readonly page: { readonly url: string; readonly title: string }
  readonly downloads: readonly Downloaded[]
  /** Hosts that pages asked for and that are not within the network of the world. */
  readonly refused: readonly string[]
  readonly screenshots?: readonly Screenshot[]
}

/** Everything that makes an environment of the web. */
export interface WebDefinition<Data, Site> extends WebOptions {
  readonly name: string
  readonly task: StandardSchema<unknown, Data>
  open(call: OpenWorldCall<Data>): WebWorld<Site> | Promise<WebWorld<Site>>
  readonly reward?: Readonly<Record<string, RewardPart<NoInfer<Data>, WebReport<NoInfer<Site>>>>>
  makeTasks?(options: MakeTasksOptions): readonly MadeTask<NoInfer<Data>>[]
  readonly splits?: readonly string[]
}

/**
 * An environment whose worlds are web pages: shown as accessibility trees in text, within a network of
 * the sites and hosts that each world names. Worlds are forked by replay, which must show the same pages.
 */
export function web<Data, Site = undefined>(
  definition: WebDefinition<Data, Site>,
): Environment<Data> {
  const { browser: path, screenshots = 0, characters = 12_000, seconds = 5, ...rest } = definition
  checkBounds({ screenshots, characters, seconds })
  const browser = leaseBrowser(path)
  const made = environment<Data, WebReport<Site>>({
    ...rest,
    calls: 'one',
    async open(call) {
      const world = await definition.open(call)
      if (world.dispose) call.defer(() => world.dispose?.())
      const network = await openNetwork({ sites: {}, hosts: [], ...world })
      call.defer(() => network[Symbol.asyncDispose]())
      const options = { seed: call.seed, characters, seconds, screenshots }
      const session = await Session.open(await browser.get(), network, options)
      call.defer(() => session.dispose())
      return await opened(world, session, network.refused)
    },
    [Symbol.asyncDispose]: () => browser[Symbol.asyncDispose](),
  })
  return { ...made, isolation }
}

const isolation = {
  by: 'Chromium',
  standing: ['network', 'files', ...(hasOwnSandbox ? ["the browser's own sandbox"] : [])],
  missing: hasOwnSandbox ? [] : ["the browser's own sandbox, as this process is root's"],
}

function checkBounds(bounds: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(bounds)) {
    const least = name === 'characters' ? 100 : name === 'seconds' ? 0.1 : 0
    if (!(value >= least && value <= 1_000_000))
      throw new RangeError(
        `${name} of a web environment is ${value}; it is a number from ${least} on.`,
      )
  }
}

const manual =
  'Elements have references such as [ref=e12]; name them in your calls. One call per turn.'

async function opened<Site>(
  world: WebWorld<Site>,
  session: Session,
  refused: ReadonlySet<string>,
): Promise<OpenedWorld<WebReport<Site>>> {
  await session.go(world.start)
  const goal = typeof world.goal === 'string' ? world.goal : await world.goal(session.page)
  const first = await session.read(-1)
  return {
    opening: [{ role: 'user', content: `${goal}\n\n${manual}\n\n${first}` }],
    tools: webTools(session, async (turn, work) => {
      await session.do(work)
      const seen = await session.read(turn)
      await world.look?.(session.page)
      return seen
    }),
    ...(world.isOver && { isOver: () => world.isOver!() }),
    async report() {
      const { url, title } = session.page
      const { downloads, screenshots } = session
      return {
        site: (await world.report?.()) as Site,
        page: { url, title },
        downloads: [...downloads],
        refused: [...refused],
        ...(screenshots.length > 0 && { screenshots: [...screenshots] }),
      }
    },
  }
}
