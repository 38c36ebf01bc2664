import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Message, Renderer } from '@espalier/text'
import { formatReference, type ImageFacts, readImageHeader } from '@espalier/text/images'
import type { PromptImages } from '../../src/base/core/image.ts'
import { type Policy, plainSampling, type SampleRequest } from '../../src/base/core/policy.ts'
import { placesIn } from '../../src/engine/rollout/images/places.ts'
import { makeImageFolder } from '../../src/run/store/images/image-folder.ts'
import { Canvas } from '../../src/worlds/pictures/canvas.ts'

/** What a server made of images. */
export interface ImagesReport {
  readonly kind: string
  readonly samples: number
  readonly failed: readonly string[]
  /** Images that were shown, and the tokens that they took. */
  readonly images: number
  readonly laidOut: number
  /** Prompt and sampled tokens that were scored again, images left out. */
  readonly scored: number
  /** The largest difference of a log-probability: of samples by the server itself, of all tokens by transformers. */
  readonly byServer: number
  readonly byTransformers: number | undefined
}

const sizes = [
  [[56, 56]],
  [[112, 84]],
  [
    [84, 56],
    [200, 30],
  ],
  [
    [61, 97],
    [28, 28],
    [300, 300],
  ],
  [],
] as const

/** Shows a server images of several sizes, samples behind them, and scores every token again. */
export async function tryImages(
  policy: Policy,
  {
    kind,
    renderer,
    python,
    model,
  }: { kind: string; renderer: Renderer; python?: string; model: string },
): Promise<ImagesReport> {
  const folder = mkdtempSync(join(tmpdir(), 'images-'))
  const store = makeImageFolder(folder)
  await using torch = python === undefined ? undefined : openScorer(python, model)
  const failed: string[] = []
  const counts = { images: 0, laidOut: 0, scored: 0, byServer: 0, byTransformers: 0 }
  const call = { signal: AbortSignal.timeout(120_000) }
  for (const [index, shown] of sizes.entries()) {
    try {
      const files: ImageFacts[] = []
      for (const [width, height] of shown) files.push(await drawn(width, height, store))
      const messages = messagesOf(files)
      const ids = renderer.render(messages, [])
      const places = placesIn(renderer, ids, messages)
      const { placeholder } = renderer.images!
      const images: PromptImages | undefined =
        places.length > 0 ? { places, placeholder, store } : undefined
      const sample = await policy.sample(requestOf(ids, messages, images, index), call)
      if (sample.kind !== 'tokens') throw new Error('no tokens came back')
      const whole = Int32Array.from([...ids, ...sample.segment.ids])
      const options = { temperature: 1, ...(images && { images }) }
      const scores = await policy.score!(whole, 1, options, call)
      const isSeen = (token: number): boolean =>
        places.some(({ start, end }) => token >= start && token < end)
      counts.images += places.length
      counts.laidOut += places.reduce((sum, { start, end }) => sum + end - start, 0)
      counts.scored += whole.length - 1
      sample.segment.logprobs?.forEach((value, token) => {
        const again = scores.logprobs[ids.length - 1 + token]!
        counts.byServer = Math.max(counts.byServer, Math.abs(value - again))
      })
      const paths = files.map(({ digest }) => join(folder, `${digest}.png`))
      const reference = await torch?.score([...whole], 1, paths)
      reference?.forEach((value, token) => {
        // What follows an image is looked back on; its own placeholders are drawn by nobody.
        if (isSeen(token + 1)) return
        counts.byTransformers = Math.max(
          counts.byTransformers,
          Math.abs(value - scores.logprobs[token]!),
        )
      })
    } catch (error) {
      failed.push(`images of ${JSON.stringify(shown)}: ${(error as Error).message.slice(0, 300)}`)
    }
  }
  rmSync(folder, { recursive: true, force: true })
  return {
    kind,
    samples: sizes.length,
    failed,
    ...counts,
    byTransformers: torch ? counts.byTransformers : undefined,
  }
}

/** A picture of this size, kept in the store. */
async function drawn(
  width: number,
  height: number,
  store: ReturnType<typeof makeImageFolder>,
): Promise<ImageFacts> {
  const canvas = new Canvas(width, height, [230, 230, 230])
  const [half, third] = [width >> 1, Math.floor(height / 3)]
  canvas.paint({ x: 3, y: 2, width: half, height: third }, [200, 40, 30])
  canvas.paint({ x: half, y: third, width: third, height }, [30, 60, 200])
  const bytes = canvas.toPng()
  const digest = createHash('sha256').update(bytes).digest('hex')
  const { kind, orientation } = readImageHeader(bytes)
  const facts = { digest, kind, width, height, orientation, bytes: bytes.length }
  await store.keep(facts, bytes)
  return facts
}

function messagesOf(files: readonly ImageFacts[]): readonly Message[] {
  const parts = files.flatMap((facts, index) => [
    { type: 'text', text: `picture ${index + 1}: ` } as const,
    { type: 'image_url', image_url: { url: formatReference(facts) } } as const,
  ])
  return [{ role: 'user', content: [...parts, { type: 'text', text: ' What do you see?' }] }]
}

function requestOf(
  ids: Int32Array,
  messages: readonly Message[],
  images: PromptImages | undefined,
  seed: number,
): SampleRequest {
  return {
    prompt: { ids, messages, tools: [], ...(images && { images }) },
    maxTokens: 8,
    sampling: plainSampling,
    stopIds: [],
    stopStrings: [],
    seed,
    key: { task: 'images', member: 0, branch: '', turn: seed },
    session: `images-${seed}`,
  }
}

/** Transformers' own log-probabilities of tokens with images. */
export function openScorer(python: string, model: string) {
  const program = new URL('./score-images.py', import.meta.url).pathname
  const child = spawn(python, [program, model], { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async (): Promise<string> => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`${python} ended: it needs torch, transformers and pillow`)
    return value
  }
  let ready: Promise<unknown> | undefined
  return {
    async score(ids: readonly number[], from: number, files: readonly string[]) {
      ready ??= next()
      await ready
      child.stdin.write(`${JSON.stringify([ids, from, files])}\n`)
      return JSON.parse(await next()) as number[]
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end()
    },
  }
}
