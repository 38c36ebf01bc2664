import {
  createRenderer,
  type ModelRenderer,
  type RendererOptions,
  readModelFolder,
} from '@espalier/text/chat'
import type { Environment, Task } from '../src/base/core/environment.ts'
import type { GroupId, TaskId } from '../src/base/core/ids.ts'
import { makeLanes } from '../src/base/core/lane.ts'
import {
  type Policy,
  plainCapabilities,
  plainSampling,
  type SampleRequest,
  type TokenSample,
} from '../src/base/core/policy.ts'
import { random, seedOf } from '../src/base/math/random.ts'
import { type ScriptedAnswer, scripted } from '../src/engine/policies/scripted.ts'
import { type Attempt, defaultLimits, type RolloutContext } from '../src/engine/rollout/attempt.ts'
import { makeSharedState } from '../src/engine/rollout/shared.ts'
import { byteModel, openRenderer } from '../src/run/settings/model-source.ts'
import { tokenSample } from './token-sample.ts'

/** The renderer over bytes that ships with the package. */
export function openByteRenderer(options: Partial<RendererOptions> = {}): Promise<ModelRenderer> {
  return openRenderer(byteModel, options)
}

/** The same for a model that sees, of Qwen's family. */
export async function openSeeingRenderer(
  options: Partial<RendererOptions> = {},
): Promise<ModelRenderer> {
  const preprocessor = { image_processor_type: 'Qwen2VLImageProcessor', patch_size: 14 }
  const size = { shortest_edge: 784, longest_edge: 784 * 64 }
  const files = {
    ...(await readModelFolder(byteModel)),
    images: { preprocessor: { ...preprocessor, size } },
  }
  const extraSpecialTokens = ['<|vision_start|>', '<|image_pad|>', '<|vision_end|>']
  return createRenderer(files, { clock: () => new Date(0), extraSpecialTokens, ...options })
}

/** A scripted policy whose texts end their turn as a model would. */
export function script(renderer: ModelRenderer, answers: readonly ScriptedAnswer[]) {
  return scripted(answers, { encode: text => renderer.tokenizer.encode(text) })
}

/** A call as the byte model's template writes it, with Python's spaces. */
export function call(name: string, input: object): string {
  const text = JSON.stringify(input).replaceAll('":', '": ')
  return `<tool_call>\n{"name": "${name}", "arguments": ${text}}\n</tool_call><|im_end|>`
}

/** Everything an attempt needs, with simple defaults. */
export function contextOf(
  parts: Pick<RolloutContext, 'environment' | 'renderer'> & {
    readonly policy: Policy
  } & Partial<RolloutContext>,
): RolloutContext {
  let ticks = 0
  const clock = (): number => ticks++ / 1000
  return {
    sampling: plainSampling,
    limits: defaultLimits,
    onLength: 'end',
    stopStrings: [],
    topLogprobs: 0,
    lanes: makeLanes({ policy: 8, tools: 8, environment: 8, reward: 8 }),
    clock,
    shared: makeSharedState(clock),
    ...parts,
  }
}

/** The first attempt at a task. */
export function attemptAt(
  environment: Environment,
  data: unknown,
  parts: Partial<Attempt> = {},
): Attempt {
  const task: Task = { id: 'task' as TaskId, data: environment.readTask(data) }
  return {
    task,
    group: 'task' as GroupId,
    member: 0,
    seed: 1,
    signal: AbortSignal.timeout(50_000),
    ...parts,
  }
}

/**
 * A policy that draws what it says from the request's seed: some calls of the calculator, then an
 * answer; with invented log-probabilities and entropies.
 */
export function dicePolicy(renderer: ModelRenderer): Policy & { readonly prompts: Int32Array[] } {
  const prompts: Int32Array[] = []
  const draw = ({ prompt, seed, maxTokens }: SampleRequest, own = seed): TokenSample => {
    const next = random(seedOf('dice', own))
    const said =
      next() < 0.6
        ? call('calculate', { expression: `${Math.floor(next() * 9)}+${next() < 0.3 ? '' : 1}` })
        : `${Math.floor(next() * 9)}<|im_end|>`
    const ids = renderer.tokenizer.encode(said).slice(0, maxTokens)
    return tokenSample(ids, { prompt: prompt.ids.length, next })
  }
  return {
    name: 'dice',
    prompts,
    capabilities: { ...plainCapabilities, entropies: true, several: true, seed: true },
    async sample(request) {
      prompts.push(request.prompt.ids.slice())
      return draw(request)
    },
    async sampleSeveral(request, seeds) {
      prompts.push(request.prompt.ids.slice())
      return seeds.map(seed => draw(request, seed))
    },
    async [Symbol.asyncDispose]() {},
  }
}
