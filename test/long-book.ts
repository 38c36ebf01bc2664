import type { ModelRenderer } from '@espalier/text/chat'
import { expect } from 'vitest'
import { z } from 'zod'
import type { Condenser } from '../src/base/core/condenser.ts'
import {
  type Policy,
  plainCapabilities,
  type SampleRequest,
  type TokenSample,
} from '../src/base/core/policy.ts'
import { rowsOf } from '../src/base/core/row.ts'
import { idsTo, pathEnds, type Tree } from '../src/base/core/tree.ts'
import { random, seedOf } from '../src/base/math/random.ts'
import { environment } from '../src/engine/environments/environment.ts'
import { tool } from '../src/engine/environments/tools/tool.ts'
import { type CondenseSettings, defaultLimits, type Limits } from '../src/engine/rollout/attempt.ts'
import { rollChain } from '../src/engine/rollout/chain.ts'
import { attemptAt, call, contextOf, openByteRenderer } from './rolling.ts'
import { tokenSample } from './token-sample.ts'

/** The byte model with the calls that its template asks for. */
export const renderer = await openByteRenderer({ toolFormat: 'hermes' })

/** What a reader finds on a page: about 160 tokens of the byte model. */
export const page = (number: number): string =>
  `Page ${number}. The town of Ardle${number} lies on the river Senn. Its mayor is Ida Moor${number}, ` +
  `who was elected in ${1900 + number}. The town is known for its ${number} bridges.`

/** A book whose pages are turned with a tool. */
export const book = environment({
  name: 'book',
  task: z.object({ pages: z.int(), opening: z.string().optional() }),
  open: ({ data }) => {
    let read = 0
    return {
      opening: [{ role: 'user', content: data.opening ?? 'Read the book.' }],
      tools: {
        turn_page: tool({
          inputSchema: z.object({ note: z.string().optional() }),
          execute: () => page(read++),
        }),
      },
      report: () => ({ read }),
    }
  },
  reward: { read: ({ report }) => Number((report as { read: number }).read > 0) },
})

/** A request, with what a made-up policy decides by. */
export interface Said extends SampleRequest {
  readonly isSummary: boolean
  /** A number from 0 to 1 that belongs to this sample alone. */
  readonly chance: number
}

/** A policy that says what a function makes of each request, with invented log-probabilities. */
export function acting(
  speak: (request: Said) => string,
  own: ModelRenderer = renderer,
): Policy & { readonly requests: SampleRequest[] } {
  const requests: SampleRequest[] = []
  const draw = (request: SampleRequest, seed = request.seed): TokenSample => {
    const next = random(seedOf('acting', seed))
    const isSummary = request.key.branch.includes('summary')
    const ids = own.tokenizer.encode(speak({ ...request, isSummary, chance: next() }))
    const kept = ids.slice(0, request.maxTokens)
    const finish = kept.length < ids.length ? 'length' : 'stop'
    return tokenSample(kept, { prompt: request.prompt.ids.length, next, finish })
  }
  const keep = (request: SampleRequest): void => {
    requests.push({ ...request, prompt: { ...request.prompt, ids: request.prompt.ids.slice() } })
  }
  return {
    name: 'acting',
    requests,
    capabilities: { ...plainCapabilities, entropies: true, several: true, seed: true },
    async sample(request) {
      keep(request)
      return draw(request)
    },
    async sampleSeveral(request, seeds) {
      keep(request)
      return seeds.map(seed => draw(request, seed))
    },
    async [Symbol.asyncDispose]() {},
  }
}

/** Turns pages, sometimes with a note, and ends at random. */
export const reads = ({ isSummary, chance, key }: Said): string => {
  if (isSummary)
    return `So far ${key.turn} pages. ${'word '.repeat(Math.floor(chance * 20))}<|im_end|>`
  if (key.turn > 12 || chance < 0.05) return 'The end.<|im_end|>'
  return call('turn_page', chance < 0.3 ? { note: 'x'.repeat(Math.floor(chance * 300)) } : {})
}

/** A condenser with when and how far it condenses. */
export function settingsOf(
  condenser: Condenser,
  parts: Partial<CondenseSettings> = {},
): CondenseSettings {
  return { condenser, above: 0.75, to: 0.5, trainSummaries: true, ...parts }
}

/** What an attempt at reading the book needs. */
export function setUp(
  condense: CondenseSettings,
  parts: { limits?: Partial<Limits>; speak?: (request: Said) => string; world?: typeof book } = {},
) {
  const policy = acting(parts.speak ?? reads)
  const world = parts.world ?? book
  const context = contextOf({
    environment: world,
    renderer,
    policy,
    condense,
    limits: { ...defaultLimits, context: 1200, newTokens: 400, turns: 20, ...parts.limits },
  })
  return { policy, context, world }
}

/** One attempt, as a chain. */
export async function rollOne(...parts: Parameters<typeof setUp>) {
  const { policy, context, world } = setUp(...parts)
  const tree = await rollChain(context, attemptAt(world, { pages: 9 }))
  return { tree, policy, trajectory: tree.trajectories[0]! }
}

/** What happened, by kind. */
export const kindsOf = ({ events }: Tree['trajectories'][number]): readonly string[] =>
  events.map(({ kind }) => kind)

/** What must hold for every tree, however it was condensed. */
export function expectExact(tree: Tree, requests: readonly SampleRequest[], context: number): void {
  const ends = tree.trajectories.flatMap(({ end }) => pathEnds(tree, end))
  const paths = ends.map(end => [...idsTo(tree, end)].join())
  for (const { prompt, maxTokens } of requests) {
    expect(prompt.ids.length + maxTokens).toBeLessThanOrEqual(context)
    const text = [...prompt.ids].join()
    expect(paths.some(path => path === text || path.startsWith(`${text},`))).toBe(true)
  }
  const credits = tree.trajectories.map(({ id }) => ({ trajectory: id, advantage: 1, weight: 1 }))
  const rows = rowsOf(tree, { credits })
  const trained = rows.reduce((sum, row) => sum + row.mask.filter(Boolean).length, 0)
  const sampledTokens = tree.nodes.reduce(
    (sum, { segment }) => sum + (segment.origin === 'sampled' ? segment.ids.length : 0),
    0,
  )
  expect(trained).toBe(sampledTokens)
  for (const row of rows) expect(row.ids.length).toBeLessThanOrEqual(context)
  for (const trajectory of tree.trajectories) expectForksTold(tree, trajectory)
  for (const { segment } of tree.nodes) expectRepeats(tree, segment)
}

/** Every rewrite on the way to a trajectory's end is in its certificate, with the reason. */
function expectForksTold(tree: Tree, { end, fidelity }: Tree['trajectories'][number]): void {
  const count = pathEnds(tree, end).length - 1
  expect(fidelity.forks).toHaveLength(count)
  expect(fidelity.kind).toBe(count > 0 ? 'forked' : 'exact')
  expect(fidelity.forks.every(({ reason }) => reason.length > 0)).toBe(true)
}

function expectRepeats(tree: Tree, segment: Tree['nodes'][number]['segment']): void {
  for (const { start, end, node, offset } of segment.repeats ?? []) {
    const there = tree.nodes[node]!.segment.ids.subarray(offset, offset + end - start)
    expect(segment.ids.subarray(start, end)).toEqual(there)
  }
}
