import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openBrowser } from '../../src/worlds/web/browser.ts'
import { espalier, type Started, scratch, start } from '../end-to-end/cli.ts'
import { openPage, type Viewing, view, type WatchedPage } from './viewing.ts'

const folder = scratch()
/** Where the pictures go, to be looked at; continuous integration keeps them. */
const pictures = process.env.ESPALIER_STATES ?? join(folder, 'pictures')
const limits = ['--max-turns', '6', '--max-new-tokens', '24']
const policy = ['--policy', 'embedded', '--environment', 'desk', ...limits]
let browser: Browser
let viewing: Viewing | undefined
let live: Started | undefined

async function make(name: string, command: string, ...words: readonly string[]): Promise<void> {
  const out = ['--out', join(folder, name), '--seed', '3']
  const { code, stderr } = await espalier(command, ...policy, ...words, ...out)
  // A run of which nothing was scored says so by a 1.
  if (code !== 0 && code !== 1) throw new Error(stderr)
}

beforeAll(async () => {
  const reward = join(folder, 'bad.ts')
  writeFileSync(reward, "export const broken = () => { throw new Error('my reward is broken') }\n")
  const few = ['--tasks', '16', '--held-out', '16', '--tasks-per-step', '4', '--steps', '2']
  await Promise.all([
    make('healthy', 'train', ...few),
    make('collapsed', 'train', ...few, '--learning-rate', '0.1'),
    make('failed', 'roll', '--tasks', '2', '--group', '2', '--reward', `${reward}#broken`),
    make('empty', 'roll', '--tasks', '2', '--group', '2', '--budget', '{"seconds":0.001}'),
    make('tree', 'roll', '--tasks', '1', '--strategy', 'tree', '--group', '1', '--leaves', '6'),
  ])
  const endless = ['--tasks', '100000', '--out', join(folder, 'going')]
  live = start(['roll', ...policy, ...endless], { folder })
  const { child } = live
  await new Promise<void>(resolve => child.stdout!.once('data', () => resolve()))
  browser = await openBrowser()
  const names = ['healthy', 'collapsed', 'failed', 'empty', 'tree', 'going']
  viewing = await view(names, { folder })
}, 240_000)

afterAll(async () => {
  live?.child.kill('SIGKILL')
  await live?.finished
  await browser?.close()
  await viewing?.[Symbol.asyncDispose]()
})

/** What is wrong with how a page is laid out: what lies off the screen, and words of one letter a line. */
const layoutProblems = `(() => {
  const width = document.documentElement.clientWidth
  const problems = []
  if (document.documentElement.scrollWidth > width) problems.push('the page is wider than the screen')
  for (const each of document.querySelectorAll('.bar a, .bar button, .bar select')) {
    const { left, right } = each.getBoundingClientRect()
    if (left < 0 || right > width) problems.push('off the screen: ' + each.outerHTML)
  }
  for (const each of document.querySelectorAll('main *')) {
    const { width, height } = each.getBoundingClientRect()
    const text = each.children.length === 0 ? each.textContent.trim() : ''
    if (text.length > 3 && width > 0 && height > 4 * width && width < 30) problems.push('too narrow: ' + text)
  }
  return problems
})()`

const themes = ['light', 'dark'] as const

/** Looks at a view at both widths, light and dark, and keeps a picture of each. */
async function lookAt(name: string, path: string, look: (page: Page) => Promise<void>) {
  mkdirSync(pictures, { recursive: true })
  for (const viewport of [
    { width: 390, height: 844 },
    { width: 1360, height: 880 },
  ]) {
    const { url } = viewing!
    await using opened: WatchedPage = await openPage(browser, url, { viewport })
    const { page, problems } = opened
    await page.goto(`${url}/#/${path}`)
    await look(page)
    for (const theme of themes) {
      await page.evaluate(`document.documentElement.dataset.theme === '${theme}' ||
        document.querySelector('.theme').click()`)
      await page.screenshot({
        path: join(pictures, `${name}-${viewport.width}-${theme}.png`),
        fullPage: true,
      })
    }
    expect(await page.evaluate(layoutProblems)).toEqual([])
    expect(problems).toEqual([])
  }
}

const says = (words: string | RegExp) => (page: Page) => page.getByText(words).first().waitFor()

describe('at the width of a telephone and of a desk, light and dark, the page shows', () => {
  it('of every run its environment, policy, result and date', async () => {
    await lookAt('runs', '', async page => {
      const line = (name: string) => page.getByRole('listitem').filter({ hasText: name })
      await line('collapsed')
        .getByText(/^[\d.]+ % → [\d.]+ %$/)
        .waitFor()
      await line('failed').getByText('4 of 4 failed').waitFor()
      await line('failed').getByText('embedded').waitFor()
    })
  })

  it('a run that went well without an alarm', async () => {
    await lookAt('healthy', 'run/healthy', async page => {
      await page.getByRole('img', { name: /^Reward\./ }).waitFor()
      await page.locator('.verdict').waitFor()
      expect(await page.getByRole('region', { name: 'Warnings' }).count()).toBe(0)
    })
  })

  it('a run whose reward throws as failed, with the reason', async () => {
    await lookAt('failed', 'run/failed', async page => {
      await page.getByRole('heading', { name: '4 of 4 trajectories failed' }).waitFor()
      await says(/^Failed in reward: my reward is broken \(.*bad.ts:1\)/)(page)
      await says('failed in reward')(page)
    })
  })

  it('a run that fell apart in the words of its report, and not in green', async () => {
    await lookAt('collapsed', 'run/collapsed', async page => {
      await says(/The policy fell apart: .* to 0\.0 %/)(page)
      await page.locator('.level.fallen').getByText('0.0 %', { exact: true }).waitFor()
    })
  })

  it('an empty run as empty', () => lookAt('empty', 'run/empty', says('This run has no groups')))

  it('a run that goes on as live', () =>
    lookAt('live', 'run/going', async page => {
      await page.getByRole('status').getByText('live').waitFor()
      await page.getByRole('img', { name: /^Reward\./ }).waitFor()
    }))

  it('a tree whose endings have numbers, in the order of the table', async () => {
    const tree = encodeURIComponent('desk/train/0/0')
    await lookAt('tree', `run/tree/tree?id=${tree}`, async page => {
      const inPicture = page.locator('.leaf .ending-number')
      await inPicture.first().waitFor()
      const inTable = page.locator('.endings tbody button')
      const drawn = await inPicture.evaluateAll(each =>
        each
          .map(node => [node.getBoundingClientRect().y, node.textContent] as const)
          .sort(([a], [b]) => a - b)
          .map(([, text]) => text),
      )
      expect(drawn.length).toBeGreaterThan(1)
      expect(await inTable.allTextContents()).toEqual(drawn)
    })
  })

  it('a training run that begins with training', async () => {
    await lookAt('groups', 'run/healthy/groups', async page => {
      const rows = page.getByRole('table', { name: 'Groups' }).getByRole('row')
      await rows.nth(2).waitFor()
      expect(await rows.nth(1).textContent()).not.toContain('held out')
      expect(await rows.nth(1).textContent()).not.toContain('held-out')
    })
  })
})
