import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import carried from '@sparticuz/chromium'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Environment, Task } from '../../src/base/core/environment.ts'
import type { TaskId } from '../../src/base/core/ids.ts'
import { openEnvironment } from '../../src/engine/environments/registry.ts'
import { roll } from '../../src/index.ts'
import { scripted } from '../../src/testing.ts'
import { leaseBrowser } from '../../src/worlds/web/browser.ts'
import { webFactory } from '../../src/worlds/web/factory.ts'
import { miniwob } from '../../src/worlds/web/miniwob.ts'
import { webShop } from '../../src/worlds/web/sites/shop.ts'
import { webTracker } from '../../src/worlds/web/sites/tracker.ts'
import { type WebOptions, type WebReport, type WebWorld, web } from '../../src/worlds/web/web.ts'
import { findRef, type Move, openForHand, scoreMoves } from '../by-hand.ts'
import { scratch } from '../end-to-end/cli.ts'
import { openPage, view } from './viewing.ts'

const closing: (() => unknown)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

function kept<Data>(environment: Environment<Data>): Environment<Data> {
  closing.push(() => environment[Symbol.asyncDispose]?.())
  return environment
}

type More = Partial<WebWorld<null>> & { readonly options?: WebOptions }

/** A site of one page, or of several by their paths. */
function site(pages: Readonly<Record<string, string>> | string, more: More = {}) {
  const of = typeof pages === 'string' ? { '/': pages } : pages
  return siteServing(({ url }) => {
    const { pathname } = new URL(url)
    const headers = { 'content-type': 'text/html' }
    return new Response(of[pathname as keyof typeof of] ?? '', { headers })
  }, more)
}

function siteServing(serve: (request: Request) => Response, { options, ...more }: More = {}) {
  const world = { goal: 'Look.', start: 'http://site.test/', sites: { 'site.test': serve } }
  return kept(
    web({ ...options, name: 'site', task: z.object({}), open: () => ({ ...world, ...more }) }),
  )
}

const task: Task<Record<string, never>> = { id: 'one' as TaskId, data: {} }
const click =
  (role: string, name?: string): Move =>
  text => ({ tool: 'click', input: { ref: findRef(text, role, name) } })
const type =
  (name: string, typed: string, role = 'textbox'): Move =>
  text => ({ tool: 'type', input: { ref: findRef(text, role, name), text: typed } })
const select =
  (name: string, option: string): Move =>
  text => ({ tool: 'select', input: { ref: findRef(text, 'combobox', name), option } })

describe('a shop and an issue tracker', () => {
  const shop = kept(webShop())
  const order = (city: string): readonly Move[] => [
    click('link', 'Vouchers'),
    text => ({ tool: 'close_tab', input: { voucher: /SAVE\d+/.exec(text)?.[0] } }),
    click('link', 'white lamp'),
    type('Pieces', '2', 'spinbutton'),
    click('button', 'Put into the cart'),
    click('link', 'Check out'),
    type('Name', 'Ada Bell'),
    type('City', city),
    select('Delivery', 'express'),
    click('button', 'Place the order'),
    click('link', 'Download the receipt'),
    () => ({ tool: 'read_download', input: { name: 'receipt-1.csv' } }),
    text => text,
  ]
  const wanted = { name: 'Ada Bell', city: 'Graz', delivery: 'express', voucher: '' } as const
  const lines = [{ product: 'white lamp', pieces: 2 }]
  const data = { shop: 3, goal: 'Order two white lamps.', wanted: { ...wanted, lines } }
  const ordering = { id: 'order' as TaskId, data }

  it('give 1 for the order that was wanted, and 0 for one that goes elsewhere', async () => {
    expect(await scoreMoves(shop, ordering, order('Graz'))).toEqual({ ordered: 1, items: 1 })
    expect(await scoreMoves(shop, ordering, order('Lyon'))).toEqual({ ordered: 0, items: 1 })
  })

  it('give 1 when the issues are as they should be, however that was done', async () => {
    const tracker = kept(webTracker())
    const made = tracker.makeTasks!({ count: 12, seed: 1 })
    const creating = made.find(({ data }) => data.goal.startsWith('Create'))!
    const issue = creating.data.wanted.at(-1)!
    const moves = [
      click('link', 'New issue'),
      type('Title', issue.title),
      select('Label', issue.label),
      select('Assignee', issue.assignee),
      click('button', 'Create'),
      () => 'done',
    ]
    expect(await scoreMoves(tracker, creating, moves)).toEqual({ done: 1, right: 1 })
    expect(await scoreMoves(tracker, creating, [() => 'done'])).toEqual({ done: 0, right: 0 })
  })

  it('make the same tasks from a seed, and others that are held out', () => {
    const of = (seed: number, split?: string) =>
      shop.makeTasks!({ count: 20, seed, ...(split && { split }) }).map(({ data }) => data)
    expect(of(1)).toEqual(of(1))
    const trained = new Set(of(1).map(each => each.shop))
    expect(of(1, 'held-out').filter(each => trained.has(each.shop))).toEqual([])
  })
})

describe('the network of a world', () => {
  it('is closed but for the hosts that are named, whatever a page tries', async () => {
    const heard: string[] = []
    const server = createServer((request, response) => {
      heard.push(request.url!)
      response.setHeader('access-control-allow-origin', '*').end('<p>hello from outside</p>')
    })
    server.on('upgrade', request => heard.push(request.url!))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    closing.push(() => server.close())
    const { port } = server.address() as AddressInfo
    const outside = (host: string): string => `//${host}:${port}`
    const page = `<p id=told></p><img src="http:${outside('127.0.0.1')}/image"><script>
      const tried = [
        fetch('http:${outside('127.0.0.1')}/fetch'),
        fetch('http:${outside('[::1]')}/fetch'),
        new Promise((_, no) => { new WebSocket('ws:${outside('127.0.0.1')}/socket').onerror = no }),
        navigator.serviceWorker?.register('/worker.js') ?? Promise.reject(),
      ]
      navigator.sendBeacon('http:${outside('127.0.0.1')}/beacon', 'x')
      Promise.allSettled(tried).then(ended => {
        told.textContent = ended.map(each => each.status).join()
      })
    </script>`
    await using closed = await openForHand(site({ '/': page, '/worker.js': '' }), task)
    expect(closed.text).toContain('rejected,rejected,rejected,rejected')
    expect(await closed.call('go', { url: `http:${outside('127.0.0.1')}/typed` })).toContain(
      'is not within the network of this world',
    )
    expect(await closed.call('go', { url: `https:${outside('127.0.0.1')}/` })).toContain('Error')
    expect(heard).toEqual([])
    const { refused } = (await closed.report()) as unknown as WebReport<null>
    expect(refused).toContain(`127.0.0.1:${port}`)
    const hosts = [`127.0.0.1:${port}`]
    await using open = await openForHand(site(page, { hosts }), task)
    const typed = await open.call('go', { url: `http:${outside('127.0.0.1')}/typed` })
    expect(typed).toContain('hello from outside')
    expect(heard).toContain('/fetch')
  })

  it('keeps files of this machine and other schemes out of reach', async () => {
    await using world = await openForHand(site('<a href="file:///etc/hostname">files</a>'), task)
    expect(await world.call('click', { ref: world.find('link', 'files') })).toContain('site.test')
    expect(await world.call('go', { url: 'file:///etc/hostname' })).toContain('invalid arguments')
  })
})

describe('a page', () => {
  it('keeps its references while it changes elsewhere', async () => {
    const page =
      '<button onclick="list.innerHTML += `<li>more</li>`">add</button><ul id=list></ul><button>last</button>'
    await using world = await openForHand(site(page), task)
    const before = [world.find('button', 'add'), world.find('button', 'last')]
    await world.call('click', { ref: before[0]! })
    await world.call('click', { ref: before[0]! })
    expect([world.find('button', 'add'), world.find('button', 'last')]).toEqual(before)
    expect(world.text.match(/more/g)).toHaveLength(2)
  })

  it('that is long is shown in parts, which scroll turns', async () => {
    const page = Array.from({ length: 400 }, (_, index) => `<p>line ${index}</p>`).join('')
    const options = { characters: 4000 }
    await using world = await openForHand(site(page, { options }), task)
    expect(world.text).toMatch(/line 20\b[\s\S]*Part 1 of \d+ of this page/)
    const next = await world.call('scroll', { direction: 'down' })
    expect(next).toContain('Part 2 of')
    expect(next).not.toMatch(/line 20\b/)
    expect(await world.call('scroll', { direction: 'up' })).toContain('Part 1 of')
  })

  it('is told of what was asked of it in vain, and goes on', async () => {
    const page = '<button disabled>off</button><select aria-label=s><option>a</select>'
    await using world = await openForHand(site(page, { options: { seconds: 3 } }), task)
    const off = world.find('button', 'off')
    expect(await world.call('click', { ref: 'e99' })).toContain('nothing on this page has')
    expect(await world.call('click', { ref: 'css=*' })).toContain('nothing on this page has')
    expect(await world.call('click', { ref: off })).toContain('Error: click failed: Timeout 3000ms')
  })

  it('has its dialogs answered, and no more tabs than are allowed', async () => {
    const page = `<button onclick="document.title = confirm('Sure?')">ask</button>
      <button onclick="for (let i = 0; i < 12; i++) window.open('/')">open</button>`
    await using world = await openForHand(site(page), task)
    const ask = world.find('button', 'ask')
    const asked = await world.call('click', { ref: ask })
    expect(asked).toContain('Note: the page said "Sure?" (confirm), and was answered OK.')
    expect(asked).toContain('Page: true (')
    await world.call('click', { ref: world.find('button', 'open') })
    expect(/Tabs: (.*)/.exec(world.text)![1]!.split(', ').length).toBeLessThanOrEqual(8)
  })

  it('shows the same time and the same chance on every replay', async () => {
    const page =
      '<p id=told></p><script>told.textContent = [Math.random(), new Date().toISOString().slice(0, 16)]</script>'
    await using one = await openForHand(site(page), task, 5)
    await using other = await openForHand(site(page), task, 5)
    expect(other.text).toBe(one.text)
    expect(one.text).toContain('2026-01-05T09:00')
  })
})

describe('a fork', () => {
  const counter = `<button onclick="n.textContent = Number(n.textContent) + 1">more</button><p id=n>0</p>`
  it('is made by replay, and goes its own way', async () => {
    await using world = await openForHand(site(counter), task)
    const more = { ref: world.find('button', 'more') }
    await world.call('click', more)
    await using copy = await world.fork()
    expect(await copy.call('click', more)).toContain(': "2"')
    expect(await copy.call('click', more)).toContain(': "3"')
    expect(await world.call('click', more)).toContain(': "2"')
  })

  it('of a site that shows something else by then fails, and says what', async () => {
    let visits = 0
    const page = () =>
      new Response(`<h1>Visit ${++visits}</h1>`, { headers: { 'content-type': 'text/html' } })
    await using world = await openForHand(siteServing(page), task)
    await expect(world.fork()).rejects.toThrow(/went another way at its opening.*Visit 1.*Visit 2/)
  })
})

describe('an attempt fails, and is not scored,', () => {
  it('when its page hangs; the next one opens', async () => {
    const page = '<button onclick="while (true);">hang</button>'
    const environment = site(page, { options: { seconds: 0.5 } })
    await using world = await openForHand(environment, task)
    await expect(world.call('click', { ref: world.find('button', 'hang') })).rejects.toThrow(
      'the page does not answer any more',
    )
    await using next = await openForHand(environment, task)
    expect(next.text).toContain('hang')
  })

  it('when its browser ends; the next one gets another', async () => {
    const browser = await carried.executablePath()
    const environment = site('<p>hello</p>', { options: { browser } })
    await using world = await openForHand(environment, task)
    // Nobody else holds the browser that this one names.
    await environment[Symbol.asyncDispose]!()
    await expect(world.call('wait', { seconds: 0 })).rejects.toThrow(/no tab is open|browser ended/)
    await using next = await openForHand(environment, task)
    expect(next.text).toContain('hello')
  })
})

it('pictures of pages are kept in the report, no more than were asked for', async () => {
  const options = { screenshots: 2 }
  await using world = await openForHand(site('<h1>hello</h1>', { options }), task)
  await world.call('wait', { seconds: 0 })
  await world.call('wait', { seconds: 0 })
  const { screenshots = [] } = (await world.report()) as unknown as WebReport<null>
  expect(screenshots.map(({ turn, type }) => [turn, type])).toEqual([
    [-1, 'image/jpeg'],
    [0, 'image/jpeg'],
  ])
  expect(Buffer.from(screenshots[0]!.data, 'base64').subarray(0, 2).toString('hex')).toBe('ffd8')
})

it('pictures are shown in the viewer, between the turns', async () => {
  const out = join(scratch(), 'run')
  const call = '<tool_call>\n{"name": "wait", "arguments": {"seconds": 0}}\n</tool_call>'
  const options = { group: 1, out, policy: await scripted([call, 'done']) }
  const looking = site('<h1>hello</h1>', { options: { screenshots: 9 } })
  for await (const _ of roll(looking, [{}], options));
  await using viewing = await view([out])
  await using browser = leaseBrowser(undefined)
  await using opened = await openPage(await browser.get(), new URL(viewing.url).origin)
  const { page, problems } = opened
  await page.goto(
    `${viewing.url.replace(/\/$/, '')}/#/run/run/trajectory?id=${encodeURIComponent('1/0/0')}`,
  )
  const picture = page.getByRole('img', { name: 'The page after turn 0' })
  await picture.waitFor()
  expect(await picture.evaluate(image => Reflect.get(image, 'naturalWidth'))).toBe(1024)
  expect(problems).toEqual([])
})

describe('pages of MiniWoB++', () => {
  const root = scratch()
  mkdirSync(join(root, 'miniwob'))
  const page = `<div id=query></div><button onclick="end(1)">right</button><button onclick="end(-1)">wrong</button><script>
    var WOB_DONE_GLOBAL = false, WOB_RAW_REWARD_GLOBAL = 0, WOB_REWARD_REASON = null, WOB_TASK_READY = true
    Math.seedrandom = seed => { Math.random = () => seed / 1000 }
    const core = {
      startEpisodeReal() { query.textContent = 'Press right, ' + Math.random() },
      getUtterance: () => query.textContent,
    }
    const end = reward => { WOB_DONE_GLOBAL = true; WOB_RAW_REWARD_GLOBAL = reward }
  </script><a href="/elsewhere">leave</a>`
  writeFileSync(join(root, 'miniwob', 'press.html'), page)
  writeFileSync(join(root, 'secret.txt'), 'secret')
  const environment = kept(miniwob({ root: join(root), pages: ['press'] }))
  const pressing = { id: 'press' as TaskId, data: { page: 'press', seed: 7 } }

  it('begin with the problem of their seed, and end with their own reward', async () => {
    await using world = await openForHand(environment, pressing)
    expect(world.text).toContain('Press right, 0.007\n')
    await world.call('click', { ref: world.find('button', 'right') })
    expect(world.isOver).toBe(true)
    expect(((await world.report()) as { site: unknown }).site).toEqual({
      done: true,
      reward: 1,
      reason: null,
    })
    const scores = await scoreMoves(environment, pressing, [click('button', 'wrong')])
    expect(scores).toEqual({ solved: 0, raw: -1 })
  })

  it('that were left end without a reward', async () => {
    expect(await scoreMoves(environment, pressing, [click('link', 'leave')])).toEqual({
      solved: 0,
      raw: 0,
    })
  })

  it('that are not there are told with those that are', () => {
    expect(() => miniwob({ root, pages: ['click'] })).toThrow(/has no page click; it has: press/)
    expect(() => miniwob({ root: '/nowhere' })).toThrow('pip install miniwob')
  })
})

it('a web that is named wrongly is told with what was possible', async () => {
  const open = (name: string) => openEnvironment(name, { web: webFactory })
  await expect(open('web:sop')).rejects.toThrow('web:shop, web:tracker or web:miniwob,root=DIR')
  await expect(open('web:miniwob')).rejects.toThrow('root=DIR')
  await expect(open('web:shop,pages=a')).rejects.toThrow('options of web:miniwob')
  await expect(open('web:shop,screenshots=99')).rejects.toThrow('screenshots')
})
