import { appendFileSync, cpSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser } from '../../src/worlds/web/browser.ts'
import { espalier, scratch, start } from '../end-to-end/cli.ts'
import {
  openPage,
  picture,
  takesPictures,
  type Viewing,
  view,
  type WatchedPage,
} from './viewing.ts'

const folder = scratch()
const runs = {
  demo: join(folder, 'demo'),
  tree: join(folder, 'tree'),
  condensed: join(folder, 'condensed'),
  seats: join(folder, 'seats'),
  damaged: join(folder, 'damaged'),
}
let browser: Browser
let viewing: Viewing
let opened: WatchedPage
let page: Page

/** Rolls with the policy inside; what it says is the same every time. */
async function roll(out: string, ...words: readonly string[]): Promise<void> {
  const common = ['--policy', 'embedded', '--seed', '3', '--out', out]
  const { code, stderr } = await espalier('roll', ...common, ...words)
  if (code !== 0) throw new Error(stderr)
}

/** Damages a frame in the middle of a journal. */
function damage(path: string): void {
  const handle = openSync(path, 'r+')
  writeSync(handle, Buffer.from('XXXX'), 0, 4, Math.floor(readFileSync(path).length / 2))
}

/** Tells of two workers in a run, as a cluster does. */
function tellOfWorkers(run: string): void {
  const worker = (id: string, more: object) => ({
    ...{ id, host: 'box', process: 7, concurrency: 16, running: 12, done: 90, refused: 0 },
    ...{ sampled: 5400, leaving: false, seconds: 60, silent: 2, refusal: null, ...more },
  })
  const workers = [worker('a', {}), worker('b', { process: 8, refusal: 'versions differ' })]
  const event = { kind: 'workers', time: '2026-01-01T00:00:00Z', workers }
  appendFileSync(join(run, 'events.jsonl'), `${JSON.stringify(event)}\n`)
}

const heading = (name: string | RegExp) => page.getByRole('heading', { name })
const go = (path: string): Promise<unknown> => page.goto(`${viewing.url}/#/${path}`)

beforeAll(async () => {
  const tree = ['--environment', 'desk', '--tasks', '4', '--strategy', 'tree', '--group', '2']
  await roll(runs.tree, ...tree, '--branch', 'tree-grpo', '--leaves', '8')
  tellOfWorkers(runs.tree)
  const long = ['--environment', 'desk:length=long', '--tasks', '2', '--group', '2']
  await roll(runs.condensed, ...long, '--condense', 'keep-last-turns', '--max-context', '256')
  const game = ['--agent', './examples/seats/haggle.ts#haggle', '--tasks', '2', '--group', '2']
  await roll(runs.seats, ...game, '--max-new-tokens', '8', '--max-turns', '4')
  cpSync(runs.tree, runs.damaged, { recursive: true })
  damage(join(runs.damaged, 'journal.frames'))
  browser = await openBrowser()
}, 240_000)

afterAll(async () => {
  await browser?.close()
})

describe('a run that trains', () => {
  it('[V2] is followed from its first evaluation to its last', async () => {
    const steps = takesPictures ? '24' : '2'
    const demo = start(['demo', '--steps', steps, '--out', runs.demo])
    const begun = new Promise<void>(resolve => {
      demo.child.stderr?.on('data', chunk => {
        if (String(chunk).includes('held out before')) resolve()
      })
    })
    await begun
    viewing = await view(['demo', 'tree', 'condensed', 'seats', 'damaged'], { folder })
    opened = await openPage(browser, viewing.url)
    page = opened.page
    await go('run/demo')
    await heading('demo').waitFor()
    await page.getByText('train running').waitFor()
    await page.getByText('live').waitFor()
    await page.getByRole('region', { name: 'Success on held-out tasks' }).waitFor()
    // Everything that follows appears by itself: the page is not opened again.
    await page.getByText(`after step ${steps}`).waitFor({ timeout: 400_000 })
    await page.getByText('train finished').waitFor()
    await page.getByText('live').waitFor({ state: 'detached' })
    expect((await demo.finished).code).toBe(0)
    const reward = page.getByRole('img', { name: new RegExp(`^Reward\\. .*at step ${steps}`) })
    await reward.waitFor()
    for (const name of ['Success', 'Contrast', 'Entropy', 'KL', 'Length', 'Tokens per second']) {
      await page.getByRole('img', { name: new RegExp(`^${name}\\.`) }).waitFor()
    }
    await picture(page, 'viewer-run', 1120)
  }, 480_000)
})

describe('groups', () => {
  it('are sorted, narrowed and searched, and every choice is in the address', async () => {
    await go('run/demo/groups?part=rolled')
    const table = page.getByRole('table', { name: 'Groups' })
    await table.getByRole('row').nth(3).waitFor()
    const status = page.getByRole('status').filter({ hasText: 'groups' })
    const all = await status.textContent()
    await page.getByRole('columnheader', { name: 'Mean' }).getByRole('button').click()
    await page.waitForURL(/sort=mean/)
    await page.getByRole('combobox', { name: /Contrast/ }).selectOption('none')
    await table.getByText('no contrast').first().waitFor()
    expect(page.url()).toContain('contrast=none')
    expect(await status.textContent()).not.toBe(all)
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('searchbox', { name: /Text/ }).fill('which order?')
    await page.waitForURL(/text=which/)
    await status.filter({ hasText: / of [\d,]+ groups/ }).waitFor()
    await page.getByRole('searchbox', { name: /Text/ }).fill('')
    await status.filter({ hasText: /^[\d,]+ groups/ }).waitFor()
    await table.getByRole('row').nth(3).waitFor()
    await go('run/demo/groups?part=rolled&sort=spread&down=1')
    await table.getByRole('row').nth(3).waitFor()
    await picture(page, 'viewer-groups')
  })

  it('show two siblings from the token where they part', async () => {
    await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().click()
    await page.getByRole('button', { name: 'Two side by side' }).click()
    await heading('Where they part').waitFor()
    await page.getByText('probable').first().waitFor()
    expect(await page.getByText(/tokens are the same/).textContent()).toMatch(
      /The first \d+ tokens/,
    )
    await picture(page, 'viewer-siblings')
  })
})

describe('a trajectory', () => {
  it('is read as a conversation and as tokens', async () => {
    await page
      .getByRole('link', { name: /^\d+\/0$/ })
      .first()
      .click()
    await page.getByText('assistant').first().waitFor()
    await page.getByRole('complementary', { name: 'Facts' }).getByText('Fidelity').waitFor()
    await picture(page, 'viewer-trajectory')
    await page.getByRole('link', { name: 'tokens', exact: true }).first().click()
    const tokens = page.getByRole('listbox')
    await tokens.getByRole('option').first().waitFor()
    const detail = page.locator('.detail')
    await detail.getByText('log p').waitFor()
    await tokens.focus()
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/token=\d+/)
    for (const name of ['Origin', 'Trained', 'Entropy', 'Advantage', 'Policy version']) {
      await page.getByText(name, { exact: true }).first().click()
      await page.getByRole('list', { name: `Colours of ${name}` }).waitFor()
    }
    await page.getByText('Log-probability', { exact: true }).first().click()
    await picture(page, 'viewer-tokens')
    await page.getByRole('link', { name: 'Raw' }).click()
    await page.getByText('"trajectory"').waitFor()
  })

  it('tells what the policy saw where it was condensed', async () => {
    await go('run/condensed/groups')
    await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().click()
    const condensed = page.locator('tr', { has: page.locator('.tag', { hasText: 'condensed' }) })
    await condensed.first().getByRole('link').first().click()
    const shown = page.locator('.shown').first()
    await shown.locator('summary').click()
    await shown.getByText('Left out here because the conversation is long').waitFor()
    await page.getByText('path 1 → 2').waitFor()
    await page.getByRole('link', { name: 'Tree' }).click()
    await page
      .getByText(/Rewritten by condenser/)
      .first()
      .waitFor()
  })
})

describe('a tree', () => {
  it('is drawn with its rewards, and any path can be read', async () => {
    await go('run/tree/groups?sort=spread&down=1')
    await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().click()
    await page.getByRole('link', { name: 'tree', exact: true }).first().click()
    await page.getByRole('img', { name: /^A tree of \d+ segments/ }).waitFor()
    await page.getByText('tree-grpo').first().waitFor()
    await page.getByRole('button', { name: '1', exact: true }).click()
    await heading(/^Path to ending 1/).waitFor()
    expect(page.url()).toContain('ending=1')
    await picture(page, 'viewer-tree')
  })
})

describe('a run on a cluster', () => {
  it('shows who works, and who does not take part and why', async () => {
    await go('run/tree')
    const table = page.getByRole('region', { name: 'Workers' }).getByRole('table')
    const row = table.getByRole('row').filter({ hasText: 'box:7' })
    await row.filter({ hasText: '12 of 16' }).filter({ hasText: '2.0 s before' }).waitFor()
    await table.getByText('does not take part: versions differ').waitFor()
    await picture(page, 'viewer-workers')
  })
})

describe('a comparison', () => {
  it('shows the tasks that changed places first', async () => {
    await go('run/demo')
    await page.getByRole('link', { name: 'Task by task' }).click()
    const table = page.getByRole('table', { name: 'Tasks' })
    await table
      .getByText(/^(lost|gained)$/)
      .first()
      .waitFor()
    expect(await page.getByText(/\d+ gained, \d+ lost/).textContent()).toMatch(/gained/)
    await picture(page, 'viewer-compare')
  })

  it('that cannot be made leaves nothing of the one before', async () => {
    await page.getByRole('combobox', { name: 'After: run' }).selectOption('tree')
    await page.getByText('no scored task in common').waitFor()
    expect(await page.getByText(/\d+ gained, \d+ lost/).count()).toBe(0)
  })
})

describe('trying', () => {
  it('goes on from a turn with an edit, and shows the branches beside the old one', async () => {
    await go('run/demo/groups?part=rolled&sort=turns&down=1')
    await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().click()
    await page.getByRole('row').nth(1).getByRole('link').first().click()
    await page.getByRole('link', { name: 'try from here' }).nth(1).click()
    await page.getByRole('spinbutton', { name: 'Continuations' }).fill('2')
    await page.getByRole('textbox').fill('one moment')
    await page.getByRole('button', { name: 'Go on from here' }).click()
    await page.getByText(/From here the policy earns/).waitFor({ timeout: 60_000 })
    await heading('branch 2').waitFor()
    expect(await heading(/^branch \d/).count()).toBe(2)
    await page.getByText('one moment').first().waitFor()
    await picture(page, 'viewer-try')
  }, 90_000)
})

describe('files of other programs', () => {
  it('open: rows that were exported for a trainer', async () => {
    const file = join(folder, 'rows.jsonl')
    await espalier('export', runs.tree, '--to', 'trl', '--out', file)
    await go('')
    await heading('Runs').waitFor()
    await page.locator('input[type=file]').setInputFiles(file)
    await heading('rows.jsonl').waitFor()
    await page.getByRole('link', { name: 'Groups' }).click()
    await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().waitFor()
  })

  it('are told what is wrong with them where none of the formats fits', async () => {
    const file = join(folder, 'notes.txt')
    writeFileSync(file, 'no rows at all')
    await go('')
    await page.locator('input[type=file]').setInputFiles(file)
    await page.getByRole('alert').getByText('fits none of the formats').waitFor()
  })
})

describe('an attempt with several seats', () => {
  it('has a group, a reward and a conversation for each seat, under its name', async () => {
    await go('run/seats')
    for (const seat of ['buyer', 'seller']) await page.getByText(`Seat ${seat}`).waitFor()
    await go('run/seats/groups')
    const table = page.getByRole('table', { name: 'Groups' })
    await table.getByText('seat buyer').first().waitFor()
    await table.getByText('seat seller').first().waitFor()
    await go(`run/seats/group?id=${encodeURIComponent('train-0@seller')}`)
    await page.getByText('Mean reward of seller').waitFor()
    await page
      .getByRole('link', { name: /^train-0@seller\/\d+$|^\d+\/0$/ })
      .first()
      .click()
    await heading('Reward of seller').waitFor()
    await page.getByText('seat seller', { exact: true }).waitFor()
    const { stdout } = await espalier('show', runs.seats, 'train-0@seller')
    expect(stdout).toMatch(/^train-0@seller\/0\/0 {2}seat seller {2}reward /m)
  })
})

describe('what cannot be shown', () => {
  it('of a damaged journal is named, and what came before is shown', async () => {
    await go('run/damaged')
    await page.getByText('The journal is damaged').waitFor()
    await page.getByText(/truncate -s \d+/).waitFor()
    await page.getByText('trajectories').first().waitFor()
  })

  it('has words: runs, groups and views that are not there', async () => {
    for (const [path, words] of [
      ['run/nothing', 'no run "nothing" is open here'],
      ['run/demo/group?id=no', 'no group "no" in this run'],
      ['run/demo/trajectory?id=no/0/0', 'no trajectory "no/0/0" in this run'],
      ['run/demo/somewhere', 'There is no view called'],
    ] as const) {
      await go(path)
      await page.getByRole('alert').getByText(words).waitFor()
    }
    await go('run/demo/groups?task=nothing-is-called-so')
    await page.getByText('No group fits').waitFor()
    const own = opened.problems.filter(problem => !/404|422/.test(problem))
    expect(own).toEqual([])
    await opened[Symbol.asyncDispose]()
    await viewing[Symbol.asyncDispose]()
  })
})
