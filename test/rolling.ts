import type { Environment, Task } from '../src/core/environment.ts'
import type { GroupId, TaskId } from '../src/core/ids.ts'
import { openLanes } from '../src/core/lane.ts'
import { type Policy, plainSampling } from '../src/core/policy.ts'
import { type ScriptedAnswer, scripted } from '../src/policies/scripted.ts'
import { type Attempt, defaultLimits, type RolloutContext } from '../src/rollout/attempt.ts'
import { byteModel, openRenderer } from '../src/run/model-source.ts'
import type { ModelRenderer, RendererOptions } from '../src/text/renderer.ts'

/** The renderer over bytes that ships with the package. */
export function openByteRenderer(options: Partial<RendererOptions> = {}): Promise<ModelRenderer> {
  return openRenderer(byteModel, options)
}

/** A scripted policy whose texts end their turn as a model would. */
export function script(renderer: ModelRenderer, answers: readonly ScriptedAnswer[]) {
  return scripted(answers, { encode: text => renderer.tokenizer.encode(text) })
}

/** A call as the byte model writes it. */
export function call(name: string, input: object): string {
  return `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call><|im_end|>`
}

/** Everything an attempt needs, with plain defaults. */
export function contextOf(
  parts: Pick<RolloutContext, 'environment' | 'renderer'> & {
    readonly policy: Policy
  } & Partial<RolloutContext>,
): RolloutContext {
  let ticks = 0
  return {
    sampling: plainSampling,
    limits: defaultLimits,
    onLength: 'end',
    stopStrings: [],
    topLogprobs: 0,
    lanes: openLanes({ policy: 8, tools: 8, environment: 8, reward: 8 }),
    clock: () => ticks++ / 1000,
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
    signal: AbortSignal.timeout(20_000),
    ...parts,
  }
}
