import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { environment, roll } from '../../src/index.ts'
import { lockFile } from '../../src/run/store/lock.ts'
import { runPaths } from '../../src/run/store/run-folder.ts'
import { scripted } from '../../src/testing.ts'
import { openBrowser } from '../../src/worlds/web/browser.ts'
import { espalier, scratch } from '../end-to-end/cli.ts'
import { openPage, view } from './viewing.ts'

const folder = scratch()
const hostile = join(folder, 'hostile')
const file = join(folder, 'run.html')
let browser: Browser

/** What would run, load or mislead if any of it were taken for more than text. */
const attacks = [
  '<script>window.hacked = true</script>',
  '<img src=x onerror="window.hacked=true"><svg onload="window.hacked=true">',
  '</script><script>window.hacked = true</script><style>@import "http://evil.example/x.css"</style>',
  '<iframe src="javascript:parent.hacked=true"></iframe><a href="javascript:window.hacked=true">a</a>',
  '\u202egnp.exe <!-- {{constructor.constructor("window.hacked=true")()}}',
]

const image = {
  type: 'image_url',
  image_url: { url: 'http://evil.example/pixel.png' },
} as const

/** A run whose tasks, tools, answers and reports are all attacks. */
async function rollHostile(): Promise<void> {
  const call = (name: string): string =>
    `<tool_call>\n${JSON.stringify({ name, arguments: { text: attacks[1] } })}\n</tool_call>`
  const policy = await scripted([
    `<think>${attacks[0]}</think>${attacks[2]}${call('__proto__')}`,
    `${attacks[3]}${call('echo')}`,
    attacks[4]!,
  ])
  const world = environment({
    name: 'hostile',
    task: { '~standard': { version: 1, vendor: 'test', validate: value => ({ value }) } },
    open: ({ id }) => ({
      opening: [
        {
          role: 'user',
          content: [
            { type: 'text', text: attacks[0]! },
            { type: 'text', text: `one${'word'.repeat(100)}` },
            // The attempts of one task fail of it: this template takes text only.
            ...(id === attacks[1] ? [image] : []),
          ],
        },
      ],
      tools: {
        echo: { inputSchema: { type: 'object' }, execute: () => `{"html": "${attacks[0]}"}` },
      },
      report: () => ({ html: attacks[1] }),
    }),
    reward: { [attacks[0]!]: () => 1 },
  })
  // The id of one begins with that of another.
  const tasks = [attacks[0]!, '__proto__', '__proto__/0', attacks[1]!].map(id => ({ id }))
  for await (const _ of roll(world, tasks, { policy, group: 2, out: hostile }));
}

beforeAll(async () => {
  await rollHostile()
  const { code, stderr } = await espalier('view', hostile, '--static', file)
  if (code !== 0) throw new Error(stderr)
  browser = await openBrowser()
}, 240_000)

afterAll(async () => {
  await browser?.close()
})

/** Goes through every view of the run, whatever it holds. */
async function clickThrough(page: Page, base: string): Promise<void> {
  await page.goto(`${base}#/run/hostile`)
  await page.getByRole('heading', { name: 'hostile' }).waitFor()
  await page.goto(`${base}#/run/hostile/groups`)
  const links = page.getByRole('table', { name: 'Groups' }).getByRole('link')
  await links.first().waitFor()
  const hrefs = await links.evaluateAll(all => all.map(link => String(Reflect.get(link, 'href'))))
  expect(hrefs.length).toBe(4)
  for (const href of hrefs) {
    await page.goto(href)
    await page.getByText('What the task is made of').click()
    const member = page.getByRole('row').nth(1).getByRole('link').first()
    const address = String(await member.getAttribute('href'))
    await page.getByRole('button', { name: 'Two side by side' }).click()
    await page.getByRole('heading', { name: 'Where they part' }).waitFor()
    for (const more of ['', '&view=tokens', '&view=raw']) {
      await page.goto(`${base}${address}${more}`)
      await page.getByRole('complementary', { name: 'Facts' }).waitFor()
      for (const summary of await page.locator('details > summary').all()) await summary.click()
    }
    await page.goto(`${base}${address.replace('trajectory', 'tree').replace(/%2F0(?=&|$)/, '')}`)
    await page.getByRole('img', { name: /^A tree of/ }).waitFor()
  }
}

describe('[V1] what a trajectory says', () => {
  it('is text in every view, whatever it is', async () => {
    await using viewing = await view([hostile])
    await using opened = await openPage(browser, viewing.url)
    await clickThrough(opened.page, `${viewing.url}/`)
    expect(await opened.page.evaluate('window.hacked')).toBeUndefined()
    expect(await opened.page.evaluate('({}).calls')).toBeUndefined()
    expect(opened.problems).toEqual([])
  })

  it('could not load anything if it did run', async () => {
    await using viewing = await view([hostile])
    await using opened = await openPage(browser, viewing.url)
    const { page } = opened
    await page.goto(viewing.url)
    const tried = await page.evaluate(`(async () => {
      const image = new Image()
      const loads = new Promise(resolve => { image.onload = () => resolve('loaded'); image.onerror = () => resolve('refused') })
      image.src = location.origin + '/favicon.ico'
      const fetched = fetch('http://evil.example/').then(() => 'loaded', () => 'refused')
      let markup = 'taken'
      try { document.body.innerHTML = '<p>' } catch { markup = 'refused' }
      return [await loads, await fetched, markup]
    })()`)
    expect(tried).toEqual(['refused', 'refused', 'refused'])
  })
})

describe('[V3] one file', () => {
  it('shows every view from a disk, without a network', async () => {
    const url = pathToFileURL(file).href
    await using opened = await openPage(browser, url, { offline: true })
    await clickThrough(opened.page, url)
    await opened.page.goto(`${url}#/run/hostile/groups?text=onerror`)
    await opened.page.getByRole('table', { name: 'Groups' }).getByRole('link').first().waitFor()
    expect(await opened.page.evaluate('window.hacked')).toBeUndefined()
    expect(opened.problems).toEqual([])
    expect(readFileSync(file, 'utf8')).not.toContain('onerror="window.hacked')
  })

  it('is not live, whatever its run was when it was written', async () => {
    const [running, page] = [join(folder, 'running'), join(folder, 'running.html')]
    cpSync(hostile, running, { recursive: true })
    const manifest = join(running, 'run.json')
    const { finished, journalBytes, ...begun } = JSON.parse(readFileSync(manifest, 'utf8'))
    writeFileSync(manifest, JSON.stringify({ ...begun, status: 'running' }))
    await using _writer = await lockFile(runPaths(running).lock)
    expect((await espalier('view', running, '--static', page)).code).toBe(0)
    await using opened = await openPage(browser, pathToFileURL(page).href)
    await opened.page.goto(`${pathToFileURL(page).href}#/run/running`)
    await opened.page.getByText('roll running').waitFor()
    expect(await opened.page.getByText('live', { exact: true }).count()).toBe(0)
  })
})

it.each(['group', 'trajectory', 'siblings', 'try'])(
  'the page of a %s is no wider than a telephone, whatever its texts are',
  async name => {
    await using viewing = await view([hostile])
    const phone = { viewport: { width: 390, height: 844 } }
    await using opened = await openPage(browser, viewing.url, phone)
    const { page } = opened
    const task = encodeURIComponent('__proto__')
    const of = { group: `id=${task}`, siblings: `a=${task}/0/0&b=${task}/1/0` }
    const query = of[name as 'group'] ?? `id=${task}/0/0&at=0`
    await page.goto(`${viewing.url}/#/run/hostile/${name}?${query}`)
    await page.getByText('wordwordword').first().waitFor()
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390)
  },
)

describe('who may look', () => {
  it('brings the token beyond loopback, which stays out of the address', async () => {
    const variables = { ESPALIER_TOKEN: 'open sesame' }
    await using viewing = await view([hostile, '--host', '0.0.0.0'], { variables })
    const { port } = new URL(viewing.url)
    const base = `http://127.0.0.1:${port}`
    expect((await fetch(`${base}/api/runs`)).status).toBe(401)
    expect((await fetch(`${base}/?token=wrong`)).status).toBe(401)
    const bearer = { authorization: 'Bearer open sesame' }
    expect((await fetch(`${base}/api/runs`, { headers: bearer })).status).toBe(200)
    await using opened = await openPage(browser, base)
    const { page } = opened
    await page.goto(`${base}/?token=open%20sesame#/run/hostile`)
    await page.getByRole('heading', { name: 'hostile' }).waitFor()
    expect(page.url()).toBe(`${base}/#/run/hostile`)
    expect(await page.evaluate('document.cookie')).toBe('')
  })

  it('is told with the token that was made for the occasion', async () => {
    await using viewing = await view([hostile, '--host', '0.0.0.0'], {
      variables: { ESPALIER_TOKEN: '' },
    })
    const { origin } = new URL(viewing.url)
    expect((await fetch(origin)).status).toBe(401)
    await using opened = await openPage(browser, origin)
    await opened.page.goto(viewing.url)
    await opened.page.getByRole('heading', { name: 'hostile' }).waitFor()
  })

  it('is no other page and no plain form', async () => {
    await using viewing = await view([hostile])
    const at = (path: string, headers: Record<string, string>, method = 'GET'): Promise<number> =>
      fetch(`${viewing.url}${path}`, { method, headers }).then(({ status }) => status)
    expect(await at('/api/runs', { origin: 'http://evil.example' })).toBe(403)
    const fork = '/api/runs/hostile/try'
    expect(await at(fork, { 'content-type': 'text/plain' }, 'POST')).toBe(415)
    expect(await at('/assets/..%2f..%2fpackage.json', {})).toBe(404)
  })
})

describe('everybody', () => {
  it('can use every view, light or dark: no serious issue', async () => {
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
    const run = join(folder, 'tree')
    const words = ['--policy', 'embedded', '--environment', 'desk', '--tasks', '3', '--group', '2']
    await espalier('roll', ...words, '--strategy', 'tree', '--branch', 'tree-grpo', '--out', run)
    await using viewing = await view([run, hostile])
    const group = 'id=desk%2Ftrain%2F0'
    const pages = [
      '#/',
      '#/run/tree',
      '#/run/tree/groups',
      `#/run/tree/group?${group}`,
      `#/run/tree/siblings?a=desk%2Ftrain%2F0%2F0%2F0&b=desk%2Ftrain%2F0%2F1%2F0`,
      `#/run/tree/trajectory?${group}%2F0%2F0`,
      `#/run/tree/trajectory?${group}%2F0%2F0&view=tokens&token=30`,
      `#/run/tree/tree?${group}%2F0`,
      `#/run/tree/try?${group}%2F0%2F0&at=0`,
      '#/compare?before=tree&after=tree',
      '#/run/nothing',
    ]
    const serious: string[] = []
    for (const colorScheme of ['light', 'dark'] as const) {
      await using opened = await openPage(browser, viewing.url, {
        colorScheme,
        reducedMotion: 'reduce',
      })
      for (const path of pages) {
        await opened.page.goto(`${viewing.url}/${path}`)
        await opened.page.locator('h1').first().waitFor()
        await expect
          .poll(() => opened.page.locator('.waiting').count(), { timeout: 20_000 })
          .toBe(0)
        const found = (await opened.page.evaluate(
          `${axe}; axe.run(document, { resultTypes: ['violations'] })`,
        )) as AxeResults
        for (const { id, impact, nodes } of found.violations) {
          if (impact === 'serious' || impact === 'critical') {
            serious.push(
              `${colorScheme} ${path}: ${id} ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
            )
          }
        }
      }
    }
    expect(serious).toEqual([])
  })
})

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly impact: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}
