import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import {
  type AssistantMessage,
  type ImagePart,
  imagesIn,
  type Message,
  textOf,
} from '@espalier/text'
import { parseReference } from '@espalier/text/images'
import { afterAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  attemptAt,
  call,
  contextOf,
  openByteRenderer,
  openSeeingRenderer,
  script,
} from '../../../../test/rolling.ts'
import type { Environment, StepCall } from '../../../base/core/environment.ts'
import { treeId } from '../../../base/core/ids.ts'
import { imagesTo } from '../../../base/core/image.ts'
import { rowsOf } from '../../../base/core/row.ts'
import { idsTo } from '../../../base/core/tree.ts'
import type { AttemptEntry } from '../../../run/store/attempt-record.ts'
import { imagePath, makeImageFolder } from '../../../run/store/images/image-folder.ts'
import { recording } from '../../../run/store/replay-attempt.ts'
import { treeFromFrame, treeToFrame } from '../../../run/store/tree-frame.ts'
import { Canvas } from '../../../worlds/pictures/canvas.ts'
import { environment } from '../../environments/environment.ts'
import { recordOfTrajectory, replayWorld } from '../../environments/fork.ts'
import { tool } from '../../environments/tools/tool.ts'
import { rollChain } from '../chain.ts'
import { imageKeeper } from './admit.ts'
import { boundedStore } from './bounded-store.ts'
import { type ImageSettings, keepImage } from './keep.ts'
import { makeMemoryStore } from './memory-store.ts'

const seeing = await openSeeingRenderer()
const folder = mkdtempSync(join(tmpdir(), 'images-'))
afterAll(() => rmSync(folder, { recursive: true }))
const store = makeImageFolder(folder)
const images: ImageSettings = { store, max: 8, pixels: 1e6, from: [] }

/** A picture of one colour. */
function picture(shade: number, width = 56, height = 28): ImagePart {
  return new Canvas(width, height, [shade, shade, shade]).toPart()
}

const words = (text: string) => ({ type: 'text', text }) as const
const at = (url: string): ImagePart => ({ type: 'image_url', image_url: { url } })

/** A picture of 7 pixels whose header says that it is 70,000 high. */
function longest(): string {
  const bytes = Buffer.from(new Canvas(7, 3, [0, 0, 0]).toPng())
  bytes.writeUInt32BE(70_000, 20)
  return `data:image/png;base64,${bytes.toString('base64')}`
}

/** A world that shows these contents one after another. */
function showing(first: Message['content'], ...then: readonly Message['content'][]): Environment {
  return environment({
    name: 'showing',
    task: z.object({}),
    open: () => ({
      opening: [{ role: 'user', content: first }] as readonly Message[],
      respond: (_, { turn }) => then[turn] ?? undefined,
    }),
    reward: { one: () => 1 },
  })
}

async function rolled(world: Environment, more: Partial<Parameters<typeof contextOf>[0]> = {}) {
  const policy = script(seeing, ['one<|im_end|>', 'two<|im_end|>', 'three<|im_end|>'])
  const context = contextOf({ environment: world, renderer: seeing, policy, images, ...more })
  const tree = await rollChain(context, attemptAt(world, {}))
  return { tree, policy, trajectory: tree.trajectories[0]! }
}

describe('an attempt that sees', () => {
  it('has its images where their tokens stand, and their bytes once, by digest', async () => {
    const world = showing([words('Look: '), picture(1)], [picture(2), picture(1)])
    const { tree, policy, trajectory } = await rolled(world)
    expect(trajectory.outcome).toEqual({ kind: 'completed' })
    const places = imagesTo(tree, trajectory.end)
    const pad = seeing.tokenizer.idOf('<|image_pad|>')!
    const ids = idsTo(tree, trajectory.end)
    expect(places.map(({ width, height }) => [width, height])).toEqual(Array(3).fill([56, 28]))
    for (const { start, end } of places) expect([...ids.subarray(start, end)]).toEqual([pad, pad])
    expect(ids.filter(id => id === pad)).toHaveLength(6)
    expect(places[0]!.digest).toBe(places[2]!.digest)
    expect(readdirSync(folder).filter(name => name.includes(places[0]!.digest))).toHaveLength(1)
    expect(policy.requests.at(-1)!.prompt.images?.places).toEqual(places)
    expect(JSON.stringify(trajectory.messages)).not.toContain('base64')
    const [row] = rowsOf(tree, {
      credits: [{ trajectory: trajectory.id, advantage: 1, weight: 1 }],
    })
    expect(row!.images).toEqual(places)
  })

  it('is the same after it was written and read, and no name of a file leads elsewhere', async () => {
    const { tree, trajectory } = await rolled(showing([picture(3)]))
    const read = treeFromFrame(treeToFrame(tree))
    expect(imagesTo(read, trajectory.end)).toEqual(imagesTo(tree, trajectory.end))
    const frame = treeToFrame(tree) as { header: { nodes: { images?: object[] }[] } }
    const broken = JSON.parse(JSON.stringify(frame.header.nodes[0]!.images)) as { end: number }[]
    broken[0]!.end = 1e6
    frame.header.nodes[0]!.images = broken
    expect(() => treeFromFrame(frame as unknown as ReturnType<typeof treeToFrame>)).toThrow(
      /ends at token/,
    )
    expect(() => imagePath(folder, { digest: '../../etc/passwd', kind: 'png' })).toThrow(
      /cannot be called/,
    )
  })

  it('keeps in memory what was used last, if its run has no folder', async () => {
    const memory = makeMemoryStore(250)
    const fake = (digest: string) => ({ ...{ digest, kind: 'png' as const }, ...size })
    const size = { width: 1, height: 1, bytes: 100, orientation: 1 }
    for (const digest of ['one', 'two', 'one', 'three', 'three'])
      await memory.keep(fake(digest), new Uint8Array(100))
    await expect(memory.read(fake('two'))).rejects.toThrow(
      /two is not here: a run without a folder/,
    )
    for (const digest of ['one', 'three']) expect(await memory.read(fake(digest))).toHaveLength(100)
  })

  it('leaves no bytes in its world, or in the record of what is not finished', async () => {
    const opened: object[] = []
    const world = environment({
      name: 'kept',
      task: z.object({}),
      open() {
        const opening: readonly Message[] = [{ role: 'user', content: [picture(1)] }]
        const shown = {
          opening,
          respond: (_: string, { turn }: StepCall) => (turn === 0 ? [picture(2)] : undefined),
        }
        opened.push(shown)
        return shown
      },
      reward: { one: () => 1 },
    }) as Environment
    const policy = script(seeing, ['one<|im_end|>', 'two<|im_end|>'])
    const entries: AttemptEntry[] = []
    const attempt = attemptAt(world, {})
    const context = contextOf({ environment: world, renderer: seeing, policy, images })
    await rollChain(
      recording(context, treeId(attempt.group, 0), entry => void entries.push(entry)),
      attempt,
    )
    expect(entries.map(({ kind }) => kind)).toEqual(['opening', 'sample', 'step', 'sample', 'step'])
    expect(JSON.stringify([opened, entries]).match(/image:[0-9a-f]{64}/g)).toHaveLength(3)
    expect(JSON.stringify([opened, entries])).not.toContain('base64')
  })

  it('is replayed from what was stored of it, since its world shows the same references', async () => {
    const world = showing([picture(1)], [picture(2)])
    const { trajectory, policy } = await rolled(world)
    const message = trajectory.messages[1] as AssistantMessage
    const record = recordOfTrajectory(trajectory, {
      turns: 1,
      replyAt: () => ({ message, calls: [] }),
    })
    const { signal, task, seed } = attemptAt(world, {})
    const context = contextOf({ environment: world, renderer: seeing, policy, images })
    const keepImage = imageKeeper(context, attemptAt(world, {}))!
    const { lanes } = context
    const call = { signal, seed, lanes, keepImage, record }
    await using replayed = await replayWorld(world, task, call)
    expect(replayed.opening).toEqual(trajectory.messages.slice(0, 1))
  })

  it('is told of what cannot be shown, with the reason, and goes on', async () => {
    const big = new Canvas(3000, 400, [0, 0, 0]).toPart()
    const svg = `data:image/png;base64,${Buffer.from('<svg/>').toString('base64')}`
    const refused = [
      big,
      at(svg),
      at('https://a.example/b.png'),
      at('data:image/png,AAAA'),
      at('gopher:'),
      at(longest()),
    ]
    const { tree, trajectory } = await rolled(showing('Go.', [...refused, picture(4)]))
    const said = textOf(trajectory.messages[2]!.content)
    for (const reason of [
      /1200000|3000 x 400 pixels/,
      /SVG is refused/,
      /is not fetched/,
      /not in base64/,
      /7 x 70000 pixels; at most 65535 on a side/,
    ])
      expect(said).toMatch(reason)
    expect(trajectory.events.filter(({ kind }) => kind === 'image:refused')).toHaveLength(6)
    expect(imagesTo(tree, trajectory.end)).toHaveLength(1)
  })

  it('fails at its environment if an opening shows what is no image', async () => {
    const { trajectory } = await rolled(showing([at('data:image/png;base64,AAAA')]))
    expect(trajectory.outcome).toMatchObject({ kind: 'failed', boundary: 'environment' })
  })

  it('reads files, and fetches from hosts that are allowed and no others', async () => {
    const bytes = new Canvas(28, 28, [5, 5, 5]).toPng()
    const file = join(folder, 'own.png')
    writeFileSync(file, bytes)
    const server = createServer((request, answer) => {
      if (request.url === '/moved.png') answer.writeHead(302, { location: '/own.png' }).end()
      else answer.end(bytes)
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const shown = [
      at(pathToFileURL(file).href),
      at(`http://${host}/own.png`),
      at(`http://${host}/moved.png`),
    ]
    const { tree, trajectory } = await rolled(showing('Go.', shown), {
      images: { ...images, from: [host] },
    })
    server.close()
    expect(imagesTo(tree, trajectory.end)).toHaveLength(2)
    expect(trajectory.events).toHaveLength(1)
  })

  it('is shown no more at one time than is allowed: the oldest are left out on a new path', async () => {
    const world = showing([picture(1)], [picture(2)], [picture(3)])
    const { tree, policy, trajectory } = await rolled(world, { images: { ...images, max: 2 } })
    const last = policy.requests.at(-1)!.prompt
    expect(last.images?.places).toHaveLength(2)
    expect(imagesIn(last.messages)).toHaveLength(2)
    expect(textOf(last.messages[0]!.content)).toBe('[image left out]')
    expect(trajectory.fidelity.forks).toEqual([
      { at: expect.any(Number), reason: '1 image left out: at most 2 are shown' },
    ])
    // An image of another colour has the same tokens, and is yet another image.
    const shades = imagesTo(tree, trajectory.end).map(({ digest }) => digest)
    expect(new Set(shades).size).toBe(2)
  })

  it('that samples what stands for an image fails, since nobody could show it', async () => {
    const world = showing([picture(1)])
    const ids = [...seeing.tokenizer.encode('<|image_pad|>')]
    const policy = script(seeing, [{ ids }])
    const { trajectory } = await rolled(world, { policy })
    expect(trajectory.outcome).toMatchObject({
      kind: 'failed',
      boundary: 'policy',
      message: expect.stringContaining('stands for an image and shows none'),
    })
  })

  it('takes images of tools, which are a word to a policy that only reads', async () => {
    const look = tool({ inputSchema: z.object({}), execute: () => [words('a pear:'), picture(6)] })
    const world = environment({
      name: 'looking',
      task: z.object({}),
      open: () => ({ opening: [{ role: 'user', content: 'Look.' }], tools: { look } }),
      reward: { one: () => 1 },
    }) as Environment
    const answers = [call('look', {}), 'done<|im_end|>']
    const { tree, trajectory } = await rolled(world, { policy: script(seeing, answers) })
    expect(imagesTo(tree, trajectory.end)).toHaveLength(1)
    expect(JSON.stringify(trajectory.calls)).toContain('image:')
    const renderer = await openByteRenderer()
    const blind = await rolled(world, { renderer, policy: script(renderer, answers) })
    expect(blind.trajectory.outcome).toEqual({ kind: 'completed' })
    expect(textOf(blind.trajectory.messages[2]!.content)).toBe('a pear:\n[image image/png]')
  })

  it('H7: takes no more room than an attempt may have, however often it is sent', async () => {
    const { signal } = new AbortController()
    const { image_url: first } = await keepImage(picture(1), images, signal)
    const { bytes } = parseReference(first.url)!
    const bounded = { ...images, store: boundedStore(store, bytes + 1) }
    for (let sent = 0; sent < 3; sent++) await keepImage(picture(1), bounded, signal)
    await expect(keepImage(picture(2), bounded, signal)).rejects.toThrow('images sent have more')
    expect(await bounded.store.read(parseReference(first.url)!)).toHaveLength(bytes)
  })

  it('is refused by its boundary where the model or the policy only reads', async () => {
    const world = showing([picture(1)])
    const renderer = await openByteRenderer()
    const blind = await rolled(world, { renderer, policy: script(renderer, ['one<|im_end|>']) })
    expect(blind.trajectory.outcome).toMatchObject({ boundary: 'renderer' })
    const policy = script(seeing, ['one<|im_end|>'])
    const reading = { ...policy, capabilities: { ...policy.capabilities, images: false } }
    const { trajectory } = await rolled(world, { policy: reading })
    expect(trajectory.outcome).toMatchObject({
      boundary: 'policy',
      message: expect.stringContaining('reads text only'),
    })
  })
})
