import { randomBytes } from 'node:crypto'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ImagePart, Message } from '@espalier/text'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Environment, environment, roll } from '../../src/index.ts'
import type { TaskInput } from '../../src/run/tasks/tasks.ts'
import { Canvas } from '../../src/worlds/pictures/canvas.ts'
import { type MazeTask, maze } from '../../src/worlds/pictures/maze.ts'
import { openBrowser } from '../../src/worlds/web/browser.ts'
import { espalier, scratch } from '../end-to-end/cli.ts'
import { openSeeingRenderer, script } from '../rolling.ts'
import { openPage, type WatchedPage } from './viewing.ts'

const folder = scratch()
const renderer = await openSeeingRenderer()
let browser: Browser

/** A long page whose file has so many bytes: browsers do not look behind the end of a picture. */
function longPage(shade: number, bytes: number): ImagePart {
  const png = new Canvas(140, 1400, [shade, shade, shade]).toPng()
  const data = Buffer.concat([png, randomBytes(bytes)]).toString('base64')
  return { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
}

/** Two of three megabytes and a small one: a page of the viewer brings at most four. */
const content = [longPage(90, 3e6), longPage(140, 3e6), longPage(190, 1e5)]

const pages = environment({
  name: 'pages',
  task: z.object({ name: z.string() }),
  open: () => {
    const opening: readonly Message[] = [{ role: 'user', content }]
    return { opening }
  },
  reward: { one: () => 1 },
})

/** Rolls two attempts at one task and writes the run into a file. */
async function written<Data>(
  name: string,
  world: Environment<Data>,
  { task, answers }: { readonly task: TaskInput<Data>; readonly answers: readonly string[] },
): Promise<string> {
  const policy = script(
    renderer,
    [...answers, ...answers].map(each => `${each}<|im_end|>`),
  )
  const options = { policy, model: renderer, group: 2, concurrency: 1, out: join(folder, name) }
  for await (const _ of roll(world, [task], options));
  const file = join(folder, `${name}.html`)
  const { code, stderr } = await espalier('view', join(folder, name), '--static', file)
  if (code !== 0) throw new Error(stderr)
  return file
}

/** Opens the first attempt of a file. */
async function openFile(file: string, name: string): Promise<WatchedPage> {
  const base = pathToFileURL(file).href
  const opened = await openPage(browser, base)
  const { page } = opened
  await page.goto(`${base}#/run/${name}/groups`)
  await page.getByRole('table', { name: 'Groups' }).getByRole('link').first().click()
  await page.getByRole('row').nth(1).getByRole('link').first().click()
  await page.getByText('assistant').first().waitFor()
  return opened
}

beforeAll(async () => {
  browser = await openBrowser()
})

afterAll(async () => {
  await browser?.close()
})

describe('a file to send', () => {
  it('shows the images of an attempt where they were seen, without a network', async () => {
    const board = { size: 3, start: [0, 0], goal: [2, 0], walls: [[0, 1]] } as const
    const task = { id: 'board', ...board } as unknown as TaskInput<MazeTask>
    const file = await written('maze', maze(), { task, answers: ['down', 'right', 'right'] })
    await using opened = await openFile(file, 'maze')
    const boards = opened.page.locator('article.user').getByAltText('image of 84 x 84 pixels')
    await boards.nth(2).waitFor()
    // What is not painted has no size of its own.
    expect(
      await boards.evaluateAll(all => all.map(each => Reflect.get(each, 'naturalWidth'))),
    ).toEqual([84, 84, 84])
    await opened.page.getByRole('link', { name: 'Tokens', exact: true }).click()
    await opened.page.getByRole('option', { name: '[image 2, 9 tokens]' }).click()
    await opened.page.getByText('84 x 84 pixels').waitFor()
    await opened.page.keyboard.press('ArrowRight')
    await opened.page.locator('[aria-selected=true]', { hasNotText: 'image' }).waitFor()
    expect(opened.problems).toEqual([])
  })

  it('names images that it has no room for, and makes long ones short', async () => {
    const task = { id: 'pages', name: 'pages' }
    const file = await written('pages', pages, { task, answers: ['three'] })
    // One of three megabytes fits, once for both attempts, and so does the small one.
    expect(statSync(file).size).toBeLessThan(5e6)
    await using opened = await openFile(file, 'pages')
    const { page } = opened
    const shown = page.getByAltText('image of 140 x 1400 pixels')
    await shown.nth(1).waitFor()
    expect(await shown.count()).toBe(2)
    expect(await shown.first().boundingBox()).toMatchObject({ height: 480 })
    await page.getByText('[image of 140 x 1400 pixels, not loaded]').waitFor()
    expect(opened.problems).toEqual([])
  })
})
