import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Group } from '../src/base/core/group.ts'
import { type GroupId, type TaskId, trajectoryId, treeId } from '../src/base/core/ids.ts'
import type { Tree } from '../src/base/core/tree.ts'
import { desk } from '../src/engine/environments/desk/desk.ts'
import { roll } from '../src/index.ts'
import { openEmbedded } from '../src/learn/model/embedded.ts'
import { newManifest } from '../src/run/store/manifest.ts'
import { createRun, runPaths } from '../src/run/store/run-folder.ts'
import { openRunWriter } from '../src/run/store/store.ts'
import { openBrowser } from '../src/worlds/web/browser.ts'
import { openPage, view } from '../test/browser/viewing.ts'

const groupCount = 12_500
const members = 8

/** A run of 100,000 trajectories in the browser: how soon it is there, and what scrolling through it loads. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const folder = mkdtempSync(join(tmpdir(), 'espalier-bench-'))
  try {
    const run = join(folder, 'long')
    await writeLongRun(run)
    const { journal } = runPaths(run)
    const megabytes = statSync(journal).size / 1e6
    const floor = await readAll(journal)
    const measured = await look(run)
    const figures = {
      trajectories: groupCount * members,
      megabytes,
      ...measured,
      readSeconds: floor,
    }
    if (!json) {
      const seconds = (value: number): string => `${value.toFixed(2)} s`
      console.log(`${figures.trajectories} trajectories, a journal of ${megabytes.toFixed(0)} MB`)
      console.log(
        `opens (first groups in sight)      ${seconds(measured.openSeconds)}  ` +
          `${(measured.openSeconds / floor).toFixed(1)} times reading the file once, ${seconds(floor)}`,
      )
      console.log(`run page, curves drawn             ${seconds(measured.runSeconds)}`)
      console.log(
        `jump to anywhere in the table      ${seconds(measured.jumpSeconds)} at most, over 12 jumps`,
      )
      console.log(`a trajectory's tokens              ${seconds(measured.tokensSeconds)}`)
      console.log(
        `loaded in all of this              ${measured.loadedMegabytes.toFixed(1)} MB; ` +
          `rows in the page at most ${measured.mostRows} of ${groupCount}`,
      )
      console.log(
        `everything looked through          ${seconds(measured.lookedSeconds)} after opening, in the background`,
      )
    }
    return figures
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Attempts at the desk, written many times under different names. */
async function writeLongRun(run: string): Promise<void> {
  await using policy = await openEmbedded()
  const groups: Group[] = []
  for await (const group of roll(desk(), 16, { policy, group: members, seed: 1 }))
    groups.push(group)
  const config = { environment: 'desk', policy: 'embedded' }
  const lock = await createRun(run, { ...newManifest('roll', config), status: 'finished' })
  await using writer = await openRunWriter(run, lock)
  for (let number = 0; number < groupCount; number++) {
    const group = renamed(groups[number % groups.length]!, number)
    await Promise.all(group.members.map(({ tree }) => writer.writeTree(tree)))
    await writer.writeGroup(group, { id: group.task, data: { number } }, number)
  }
  await writer.complete()
}

function renamed(group: Group, number: number): Group {
  const id = `task-${number}` as GroupId
  return {
    id,
    task: id as string as TaskId,
    unscored: [],
    members: group.members.map((member, place) => {
      const name = treeId(id, place)
      const trajectory = { ...member.trajectory, id: trajectoryId(name, 0) }
      const tree: Tree = { ...member.tree, id: name, member: place, trajectories: [trajectory] }
      return { ...member, tree, trajectory }
    }),
  }
}

/** The floor: reading the file once. */
async function readAll(path: string): Promise<number> {
  const started = performance.now()
  const handle = await open(path, 'r')
  const buffer = Buffer.alloc(1 << 20)
  while ((await handle.read(buffer, 0, buffer.length)).bytesRead > 0);
  await handle.close()
  return (performance.now() - started) / 1000
}

async function look(run: string) {
  await using viewing = await view([run])
  const browser = await openBrowser()
  try {
    await using opened = await openPage(browser, viewing.url)
    const { page } = opened
    let loaded = 0
    page.on('response', async response => {
      loaded += Number(
        ((await response.allHeaders().catch(() => ({}))) as Record<string, string>)[
          'content-length'
        ] ?? 0,
      )
    })
    const rows = page.locator('.virtual .space .row[aria-rowindex]')
    const openSeconds = await timed(async () => {
      await page.goto(`${viewing.url}/#/run/long/groups`)
      await rows.first().waitFor()
    })
    const started = performance.now()
    const { jumpSeconds, mostRows } = await jump(page)
    const tokensSeconds = await timed(async () => {
      await page.goto(`${viewing.url}/#/run/long/trajectory?id=task-9999%2F3%2F0&view=tokens`)
      await page.getByRole('option').first().waitFor()
    })
    await waitUntilLooked(viewing.url)
    const lookedSeconds = (performance.now() - started) / 1000
    const runSeconds = await timed(async () => {
      await page.goto(`${viewing.url}/#/run/long`)
      await page.getByRole('img', { name: /^Reward\./ }).waitFor()
    })
    return {
      openSeconds,
      runSeconds,
      jumpSeconds,
      tokensSeconds,
      lookedSeconds,
      mostRows,
      loadedMegabytes: loaded / 1e6,
    }
  } finally {
    await browser.close()
  }
}

/** Scrolls to places all over the table; gives the longest time until the rows there were in sight. */
async function jump(page: Page): Promise<{ jumpSeconds: number; mostRows: number }> {
  let jumpSeconds = 0
  let mostRows = 0
  for (let number = 1; number <= 12; number++) {
    const target = Math.floor((groupCount * ((number * 7) % 12)) / 12) + 2
    const seconds = await timed(async () => {
      await page.evaluate(`document.querySelector('.virtual .rows').scrollTop = ${target * 44}`)
      await page.locator(`.row[aria-rowindex="${target + 4}"]`).waitFor()
    })
    jumpSeconds = Math.max(jumpSeconds, seconds)
    mostRows = Math.max(mostRows, await page.locator('.virtual .space .row').count())
  }
  return { jumpSeconds, mostRows }
}

async function waitUntilLooked(url: string): Promise<void> {
  for (;;) {
    const { progress } = (await (await fetch(`${url}/api/runs/long`)).json()) as {
      readonly progress: { readonly looked: number; readonly trees: number }
    }
    if (progress.looked === progress.trees) return
    await new Promise(resolve => setTimeout(resolve, 250))
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const started = performance.now()
  await work()
  return (performance.now() - started) / 1000
}
