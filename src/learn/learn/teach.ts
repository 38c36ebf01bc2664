import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { steadySeconds } from '../../base/core/call.ts'
import type { Environment, Task } from '../../base/core/environment.ts'
import type { Conversation } from '../../run/demonstrations/conversation.ts'
import { demonstrate, mistakenWords, type Show } from '../../run/demonstrations/demonstrations.ts'
import { checkTeachOptions } from '../../run/settings/check-teach-options.ts'
import { readTasks, type TaskSource } from '../../run/tasks/tasks.ts'
import { type EmbeddedPolicy, embeddedPolicy } from '../model/policy.ts'
import { rendererFor, type TeachModelOptions, teachModel } from '../model/teach.ts'

/** How a model is taught. */
export interface TeachOptions<Data> extends TeachModelOptions {
  /** Shows how a task is done, turn by turn. */
  readonly show: Show<Data>
  /** Turns per demonstration at most. @default 32 */
  readonly turns?: number
  readonly split?: string
  /** The folder to keep the model in. @default one among the system's temporary files */
  readonly out?: string
}

/** Makes an embedded policy for an environment from demonstrations of its tasks. */
export async function teach<Data>(
  environment: Environment<Data>,
  tasks: TaskSource<Data>,
  options: TeachOptions<Data>,
): Promise<EmbeddedPolicy> {
  checkTeachOptions<TeachOptions<Data>>(options)
  const { show, turns = 32, split, out, ...rest } = options
  const { seed, signal = new AbortController().signal } = options
  const list: Task<Data>[] = []
  const reading = { seed, ...(split !== undefined && { split }) }
  for await (const task of readTasks(environment, tasks, reading)) list.push(task)
  if (list.length === 0) throw new RangeError('There are no tasks to demonstrate.')
  const conversations = await demonstrate(environment, list, { show, turns, signal })
  const words = await mistakenWords(environment, list[0]!, signal)
  const texts = [...(options.texts ?? []), ...words]
  return await teachFrom(conversations, { ...rest, texts, ...(out !== undefined && { out }) })
}

/** Rows that a model is taught on if no epochs are given: enough to learn to copy. */
const usualRows = 24_000

/** Makes an embedded policy from conversations and keeps it in a folder. */
export async function teachFrom(
  conversations: readonly Conversation[],
  options: TeachModelOptions & { readonly out?: string },
): Promise<EmbeddedPolicy> {
  const { out, ...rest } = options
  const epochs = Math.max(1, Math.round(usualRows / Math.max(1, conversations.length)))
  const model = await teachModel(conversations, { epochs, ...rest })
  const folder = out ?? (await mkdtemp(join(tmpdir(), 'espalier-model-')))
  await model.save(folder)
  return embeddedPolicy(model, { folder, clock: steadySeconds })
}

/** Limits of an attempt that leave room for what demonstrations show, and for a mistake or two. */
export type AttemptLimits = { readonly turns: number; readonly newTokens: number }

/** Reads limits for attempts of a taught policy from what it was shown. */
export function limitsFor(
  { model }: EmbeddedPolicy,
  conversations: readonly Conversation[],
): AttemptLimits {
  const renderer = rendererFor('taught', model.files)
  let [turns, longest] = [0, 0]
  for (const { messages, tools } of conversations) {
    const said = messages.filter(message => message.role === 'assistant')
    turns = Math.max(turns, said.length)
    for (const message of said) {
      longest = Math.max(longest, renderer.encodeReply(message, tools).length)
    }
  }
  return { turns: turns + 2, newTokens: 8 * Math.ceil((longest + 8) / 8) }
}
