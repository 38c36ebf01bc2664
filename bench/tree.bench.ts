import { setMaxListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ModelRenderer } from '@espalier/text/chat'
import type { Environment } from '../src/base/core/environment.ts'
import {
  type Policy,
  plainCapabilities,
  type SampleRequest,
  type TokenSample,
} from '../src/base/core/policy.ts'
import { isSampled } from '../src/base/core/segment.ts'
import type { Tree } from '../src/base/core/tree.ts'
import { random, seedOf } from '../src/base/math/random.ts'
import { calculator } from '../src/engine/environments/built-in/calculator.ts'
import { desk } from '../src/engine/environments/desk/desk.ts'
import { withFork } from '../src/engine/environments/fork.ts'
import { defaultLimits, type Limits } from '../src/engine/rollout/attempt.ts'
import { openBranchPolicy } from '../src/engine/rollout/branches/registry.ts'
import { rollChain } from '../src/engine/rollout/chain.ts'
import { rollTree } from '../src/engine/rollout/tree.ts'
import { baseModel, openEmbedded } from '../src/learn/model/embedded.ts'
import { openRenderer } from '../src/run/settings/model-source.ts'
import { attemptAt, call, contextOf, openByteRenderer } from '../test/rolling.ts'
import { tokenSample } from '../test/token-sample.ts'

const leaves = 16
const tasks = 12
const environment = withFork(calculator())

/** The setting of a measurement: a world, a counting engine, and the tasks. */
interface Setting {
  readonly environment: Environment
  readonly renderer: ModelRenderer
  readonly limits: Limits
  /** Each measurement has an engine of its own, with an empty cache. */
  readonly open: () => Promise<Engine>
  readonly taskAt: (task: number) => unknown
}

interface Engine {
  readonly policy: Policy
  /** Prompt tokens it was sent, those it found in its prefix cache, and requests. */
  readonly counts: { prompt: number; cached: number; requests: number }
}

/** Branch policies that give sixteen endings: from one tree, or from two or four. */
const strategies = {
  'fixed:width=2,depth=4': { trees: 1 },
  'tree-grpo:expansions=7,rounds=1': { trees: 2 },
  'arpo:initial=2,chance=0.8': { trees: 4 },
  'tree-rl:tokens=5,branches=3': { trees: 1 },
} as const

type BranchName = keyof typeof strategies

/** Sampled and sent tokens of trees against chains with as many endings, and the memory of a large tree. */
export async function bench({ json }: { json: boolean }): Promise<object> {
  const renderer = await openByteRenderer({ toolFormat: 'hermes' })
  const counted = await compare(countedSetting(renderer), Object.keys(strategies), { json })
  if (!json) console.log('the model inside, at the desk')
  const real = await compare(await deskSetting(), ['tree-grpo:expansions=7,rounds=1'], { json })
  const memory = await measureMemory(renderer)
  if (!json) console.log('memory', memory)
  return { leaves, tasks, ...counted, embedded: real, memory }
}

/** Chains, and trees with as many endings, in one setting. */
async function compare(
  setting: Setting,
  names: readonly string[],
  { json }: { readonly json: boolean },
): Promise<Record<string, object>> {
  const chain = await measure(setting, { name: 'chain', trees: leaves })
  const figures: Record<string, object> = { chain }
  if (!json) print('chain', chain, chain)
  for (const name of names) {
    const cost = await measure(setting, { name, trees: strategies[name as BranchName].trees })
    figures[name] = { ...cost, ratio: ratios(cost, chain) }
    if (!json) print(name, cost, chain)
  }
  return figures
}

/** Five turns with a calculator behind a prompt of some 500 tokens, and an engine with a radix cache. */
function countedSetting(renderer: ModelRenderer): Setting {
  return {
    environment,
    renderer,
    limits: { ...defaultLimits, turns: 6 },
    open: async () => openEngine(renderer),
    taskAt: task => ({ prompt: `${task}: ${'Compute it step by step. '.repeat(20)}`, answer: '5' }),
  }
}

/** The base model at the desk, with its own prefix cache. */
async function deskSetting(): Promise<Setting> {
  const world = withFork(desk() as Environment)
  const made = world.makeTasks!({ count: tasks, seed: 1 })
  return {
    environment: world,
    renderer: await openRenderer(baseModel),
    limits: { ...defaultLimits, turns: 10, newTokens: 24 },
    open: async () => countingEngine(await openEmbedded(undefined, { threads: 1 })),
    taskAt: task => made[task]!.data,
  }
}

/** Counts what a policy is sent and finds in its cache. */
function countingEngine(policy: Policy): Engine {
  const counts = { prompt: 0, cached: 0, requests: 0 }
  const counting: Policy = {
    ...policy,
    async sample(request, call) {
      const sample = await policy.sample(request, call)
      counts.prompt += sample.usage.prompt
      counts.cached += sample.usage.cached ?? 0
      counts.requests++
      return sample
    },
  }
  return { policy: counting, counts }
}

interface Cost {
  /** Endings per task. */
  readonly leaves: number
  /** Sampled tokens per ending. */
  readonly sampledPerLeaf: number
  /** Prompt tokens sent, those found in the prefix cache, and those computed anew; per ending. */
  readonly promptPerLeaf: number
  readonly cachedPerLeaf: number
  readonly computedPerLeaf: number
  /** Requests per ending; siblings drawn together are one. */
  readonly requestsPerLeaf: number
  /** Share of prompt tokens that were in the cache. */
  readonly hits: number
}

interface Strategy {
  readonly name: string
  /** Trees per task. */
  readonly trees: number
}

async function measure(setting: Setting, { name, trees }: Strategy): Promise<Cost> {
  const { environment, renderer, limits } = setting
  const engine = await setting.open()
  await using _policy = engine.policy
  const context = contextOf({ environment, renderer, policy: engine.policy, limits })
  const roll =
    name === 'chain'
      ? rollChain
      : rollTree({
          branch: openBranchPolicy(name, renderer.vocabulary),
          leaves: leaves / trees,
        })
  let endings = 0
  let tokens = 0
  for (let task = 0; task < tasks; task++) {
    for (let member = 0; member < trees; member++) {
      const attempt = attemptAt(environment, setting.taskAt(task), { member, seed: task + 1 })
      const tree = await roll(context, attempt)
      endings += tree.trajectories.length
      tokens += sampledIn(tree)
    }
  }
  const { prompt, cached, requests } = engine.counts
  return {
    leaves: round(endings / tasks),
    sampledPerLeaf: round(tokens / endings),
    promptPerLeaf: round(prompt / endings),
    cachedPerLeaf: round(cached / endings),
    computedPerLeaf: round((prompt - cached) / endings),
    requestsPerLeaf: round(requests / endings),
    hits: round(cached / prompt),
  }
}

function sampledIn({ nodes }: Tree): number {
  return nodes.reduce((sum, { segment }) => sum + (isSampled(segment) ? segment.ids.length : 0), 0)
}

/**
 * An engine that counts: what it says is drawn from the request's seed, and its prefix cache keeps
 * every page of sixteen tokens it has seen, as a radix cache with room enough does.
 */
function openEngine(renderer: ModelRenderer): Engine {
  const pages = new Set<string>()
  const counts = { prompt: 0, cached: 0, requests: 0 }
  const see = (ids: Int32Array): number => {
    let hash = 0
    let known = 0
    for (let end = 16; end <= ids.length; end += 16) {
      for (let at = end - 16; at < end; at++) hash = (Math.imul(hash, 31) + ids[at]! + 1) | 0
      const key = `${end}:${hash}`
      if (known === end - 16 && pages.has(key)) known = end
      pages.add(key)
    }
    return known
  }
  const answer = (
    { prompt: { ids: prompt }, key }: SampleRequest,
    seed: number,
    cached: number,
  ): TokenSample => {
    const ids = renderer.tokenizer.encode(speech(seed, key.turn))
    const whole = new Int32Array(prompt.length + ids.length)
    whole.set(prompt)
    whole.set(ids, prompt.length)
    see(whole)
    const next = random(seedOf('numbers', seed))
    return tokenSample(ids, { prompt: prompt.length, cached, next })
  }
  const send = (prompt: Int32Array): number => {
    const cached = see(prompt)
    counts.prompt += prompt.length
    counts.cached += cached
    counts.requests++
    return cached
  }
  const policy: Policy = {
    name: 'counting',
    capabilities: { ...plainCapabilities, entropies: true, several: true, seed: true },
    sample: async request => answer(request, request.seed, send(request.prompt.ids)),
    async sampleSeveral(request, seeds) {
      const cached = send(request.prompt.ids)
      return seeds.map(seed => answer(request, seed, cached))
    },
    async [Symbol.asyncDispose]() {},
  }
  return { policy, counts }
}

/** Some reasoning, then a call of the calculator or, in the fifth turn, an answer. */
function speech(seed: number, turn: number): string {
  const next = random(seedOf('speech', seed))
  const thought = 'so '.repeat(10 + Math.floor(next() * 30))
  const expression = `${Math.floor(next() * 9)}+${Math.floor(next() * 9)}`
  return turn < 4 ? `${thought}${call('calculate', { expression })}` : `${thought}<|im_end|>`
}

/** Trees kept while memory is measured: a single one would be lost in noise. */
const kept = 10

/** The memory of a tree of 64 endings over a prefix of 30,000 tokens, against 64 separate rows. */
async function measureMemory(renderer: ModelRenderer): Promise<object> {
  const context = contextOf({
    environment,
    renderer,
    policy: openEngine(renderer).policy,
    limits: { ...defaultLimits, turns: 1, context: 100_000 },
  })
  const branch = openBranchPolicy('fixed:width=64,depth=1', renderer.vocabulary)
  const attempt = attemptAt(environment, { prompt: 'x'.repeat(30_000), answer: '5' })
  setMaxListeners(0, attempt.signal)
  const roll = (): Promise<Tree> => rollTree({ branch, leaves: 64 })(context, attempt)
  // The first run fills caches.
  await roll()
  const before = await settledBytes()
  const trees: Tree[] = []
  for (let count = 0; count < kept; count++) trees.push(await roll())
  const bytes = ((await settledBytes()) - before) / kept
  const tree = trees[0]!
  const tokens = tree.nodes.reduce((sum, { segment }) => sum + segment.ids.length, 0)
  const prefix = tree.nodes[1]!.segment.ids.length
  const rows = tree.trajectories.length * prefix * Int32Array.BYTES_PER_ELEMENT
  return {
    leaves: tree.trajectories.length,
    prefixTokens: prefix,
    storedTokens: tokens,
    treeMegabytes: round(bytes / 1e6),
    rowsMegabytes: round(rows / 1e6),
    ratio: round(bytes / rows),
  }
}

async function settledBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  for (let round = 0; round < 4; round++) {
    runInNewContext('gc')()
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

function ratios(cost: Cost, floor: Cost): object {
  return {
    sampled: round(cost.sampledPerLeaf / floor.sampledPerLeaf),
    prompt: round(cost.promptPerLeaf / floor.promptPerLeaf),
    computed: round(cost.computedPerLeaf / floor.computedPerLeaf),
  }
}

function print(name: string, cost: Cost, floor: Cost): void {
  console.log(
    `${name.padEnd(34)} ${cost.leaves} endings  sampled ${cost.sampledPerLeaf}  sent ${cost.promptPerLeaf}  ` +
      `computed ${cost.computedPerLeaf} (hits ${(100 * cost.hits).toFixed(0)} %)  requests ${cost.requestsPerLeaf}  ` +
      `against chains ${JSON.stringify(ratios(cost, floor))}`,
  )
}

function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
