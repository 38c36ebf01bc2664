import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import type { Environment, MadeTask, MakeTasksOptions } from '../../base/core/environment.ts'
import { SettingError } from '../../base/core/names/setting-error.ts'
import { random, seedOf } from '../../base/math/random.ts'
import { late, lateSchema } from '../../engine/environments/late.ts'
import type { WebPage } from './session.ts'
import { serveFolder } from './sites/folder.ts'
import { type WebOptions, web } from './web.ts'

function makeSchema() {
  return z.object({
    /** The name of a page, such as `click-button`. */
    page: z.string().regex(/^[\w-]+$/),
    /** What the page makes its problem from. */
    seed: z.int().min(0),
  })
}

/** One problem of a page of MiniWoB++. */
export type MiniwobTask = z.output<ReturnType<typeof makeSchema>>

/** How an episode of MiniWoB++ stands. */
export interface MiniwobState {
  readonly done: boolean
  /** From -1 to 1, without the deduction for time. */
  readonly reward: number
  readonly reason: string | null
}

/** Where MiniWoB++ is, and which of its pages are wanted. */
export interface MiniwobOptions extends WebOptions {
  /** The folder `html` of the Python package miniwob. */
  readonly root: string
  /** @default all pages */
  readonly pages?: readonly string[] | undefined
}

/** Seconds that an episode may take by the page's own clock: as BrowserGym has it. */
const episodeMilliseconds = 1_000_000

const state = late(() =>
  z.object({ done: z.boolean(), reward: z.number(), reason: z.string().nullable() }),
)

/** MiniWoB++ from its own files: 125 small pages, each with a problem for every seed. */
export function miniwob({ root, pages, ...options }: MiniwobOptions): Environment<MiniwobTask> {
  const known = pagesOf(root)
  const wrong = pages?.find(page => !known.includes(page))
  if (wrong !== undefined)
    throw new SettingError(`MiniWoB++ in ${root} has no page ${wrong}; it has: ${known.join(', ')}`)
  return web({
    ...options,
    name: 'web-miniwob',
    task: lateSchema(makeSchema),
    open({ data }) {
      let reached: MiniwobState = { done: false, reward: 0, reason: null }
      return {
        sites: { 'miniwob.test': serveFolder(root) },
        start: `http://miniwob.test/miniwob/${data.page}.html`,
        goal: page => begin(page, data.seed),
        async look(page) {
          if (!reached.done) reached = await readState(page)
        },
        isOver: () => reached.done,
        report: () => reached,
      }
    },
    reward: {
      solved: ({ report: { site } }) => Number(site.reward > 0),
      raw: { weight: 0, score: ({ report: { site } }) => site.reward },
    },
    makeTasks: options => miniwobTasks(pages ?? known, options),
    splits: ['train', 'held-out'],
  })
}

function pagesOf(root: string): readonly string[] {
  const folder = join(root, 'miniwob')
  try {
    const files = readdirSync(folder).filter(file => file.endsWith('.html'))
    if (files.length > 0) return files.map(file => file.slice(0, -'.html'.length)).sort()
  } catch {
    // Told below: whoever named the folder has to know what it should be.
  }
  throw new SettingError(
    `${folder} has no pages: root is the folder html of the Python package miniwob (pip install miniwob)`,
  )
}

/** Hides what shows the time and the reward, and starts the problem of that seed; gives what it asks. */
async function begin(page: WebPage, seed: number): Promise<string> {
  const asked = await page.evaluate(`(async () => {
    const style = document.createElement('style')
    style.textContent = '#reward-display, #click-canvas, #sync-task-cover { display: none !important } #query { visibility: hidden }'
    document.head.append(style)
    Math.seedrandom(${seed})
    core.EPISODE_MAX_TIME = ${episodeMilliseconds}
    core.startEpisodeReal()
    while (!WOB_TASK_READY) await new Promise(resolve => setTimeout(resolve, 20))
    const asked = core.getUtterance()
    return typeof asked === 'string' ? asked : asked.utterance
  })()`)
  return z.string().parse(asked)
}

async function readState(page: WebPage): Promise<MiniwobState> {
  const given = await page.evaluate(
    '({ done: WOB_DONE_GLOBAL, reward: WOB_RAW_REWARD_GLOBAL, reason: WOB_REWARD_REASON ?? null })',
  )
  const read = state().safeParse(given)
  // A page that was left has no episode any more.
  return read.success ? read.data : { done: true, reward: 0, reason: 'the page was left' }
}

/** Problems in turn, page after page; those of odd seeds are held out. */
function miniwobTasks(
  pages: readonly string[],
  { count, seed, split = 'train' }: MakeTasksOptions,
): readonly MadeTask<MiniwobTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const page = pages[index % pages.length]!
    const drawn = Math.floor(random(seedOf(seed, 'web-miniwob', split, index))() * 500_000)
    const data = { page, seed: 2 * drawn + Number(split === 'held-out') }
    return { id: `${page}-${data.seed}`, data }
  })
}
