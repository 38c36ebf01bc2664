// The verbs of the front door. Each is loaded with its first call: most programs use one or two of them.
import type { Environment } from './base/core/environment.ts'
import type { Group } from './base/core/group.ts'
import type { Policy } from './base/core/policy.ts'
import type { GatewayOptions, RunningGateway } from './doors/gateway/listen.ts'
import type { PolicyOptions } from './engine/policies/open-policy.ts'
import type { TeachOptions } from './learn/learn/teach.ts'
import type { Trained } from './learn/learn/train.ts'
import type { TrainOptions } from './learn/learn/train-options.ts'
import type { EmbeddedPolicy } from './learn/model/policy.ts'
import type { Exported, ExportOptions } from './run/exchange/export.ts'
import type { Imported, ImportOptions } from './run/exchange/import.ts'
import type { EvaluateOptions } from './run/measure/evaluate.ts'
import type { Evaluated } from './run/measure/measure.ts'
import type { RollOptions } from './run/run/roll-options.ts'
import type { TaskSource } from './run/tasks/tasks.ts'

/**
 * Rolls a group of attempts for every task; yields each group as soon as it is complete.
 *
 * @example
 * for await (const group of roll(calculator(), 16, { policy: 'sglang:http://localhost:30000' })) …
 */
export async function* roll<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: RollOptions,
): AsyncGenerator<Group, void> {
  yield* (await import('./run/run/roll.ts')).roll(environment, tasks, options)
}

/**
 * Rolls and learns in turn; gives the success on held-out tasks before and after.
 *
 * @example
 * const { successBefore, successAfter } = await train(desk(), 2000, { policy: 'embedded' })
 */
export async function train<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: TrainOptions<Data>,
): Promise<Trained> {
  return await (await import('./learn/learn/train.ts')).train(environment, tasks, options)
}

/** Makes an embedded policy for an environment from demonstrations of its tasks. */
export async function teach<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data>,
  options: TeachOptions<Data>,
): Promise<EmbeddedPolicy> {
  return await (await import('./learn/learn/teach.ts')).teach(environment, tasks, options)
}

/** Attempts tasks without training on them: success, pass@k and pass^k, each with its interval. */
export async function evaluate<Data>(
  environment: Environment<Data> | string,
  tasks: TaskSource<Data>,
  options: EvaluateOptions,
): Promise<Evaluated> {
  return await (await import('./run/measure/evaluate.ts')).evaluate(environment, tasks, options)
}

/**
 * Writes a run as training rows, in canonical order: task, member, row. The file appears when it is
 * whole; a run that the format refuses leaves none.
 */
export async function exportRun(run: string, options: ExportOptions): Promise<Exported> {
  return await (await import('./run/exchange/export.ts')).exportRun(run, options)
}

/** Makes a run of a foreign file, so that it can be shown, scored and exported. */
export async function importRun(file: string, options: ImportOptions): Promise<Imported> {
  return await (await import('./run/exchange/import.ts')).importRun(file, options)
}

/**
 * Serves a policy to agents in any language and keeps what they do as a run.
 *
 * @example
 * await using door = await gateway({ policy: 'embedded', group: 4, out: 'runs/agents' })
 */
export async function gateway(options: GatewayOptions): Promise<RunningGateway> {
  return await (await import('./doors/gateway/listen.ts')).gateway(options)
}

/**
 * Opens a policy by its URI: `embedded`, `embedded:DIR`, `sglang:URL`, `vllm:URL`, `llama-cpp:URL`,
 * `openai:URL`, `tinker:URL`, `scripted:FILE`, `replay:FILE`. Several share the load. `model` names the folder whose
 * tokenizer encodes the texts of a script.
 */
export async function openPolicy(
  uri: string | readonly string[],
  options: PolicyOptions & { readonly model?: string } = {},
): Promise<Policy> {
  return await (await import('./run/settings/open-policy.ts')).openPolicy(uri, options)
}
