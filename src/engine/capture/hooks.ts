import type { Speaker } from '../../base/core/speaker.ts'
import { aiSdkModels } from './ai-sdk/model.ts'
import type { AgentModel } from './ai-sdk/types.ts'
import type { Capture } from './contract.ts'
import { agentFetch } from './fetch.ts'
import { agentsModelProvider } from './openai-agents/provider.ts'
import type { AgentsModelProvider } from './openai-agents/types.ts'

/** The ways in which an agent can ask the policy of its attempt; all lead into one tree. */
export interface Hooks {
  /** A language model for the AI SDK (version 3 of its provider contract, which `ai` 6 and 7 take). */
  readonly model: AgentModel
  /** Language models for the AI SDK by the version of their contract, for older and newer releases. */
  readonly models: { readonly [Version in 'v2' | 'v3' | 'v4']: AgentModel<Version> }
  /** For the official clients of OpenAI, Anthropic and Google; no request leaves the process. */
  readonly fetch: typeof fetch
  /** For the OpenAI Agents SDK: `new Runner({ modelProvider })`. */
  readonly modelProvider: AgentsModelProvider
  /** For code that speaks in messages: `await speaker.say(messages, { signal })`. */
  readonly speaker: Speaker
}

/** What hooks are made from. */
export interface HookOptions {
  readonly capture: Pick<Capture, 'respond' | 'countTokens'>
  readonly signal: AbortSignal
  /** What the policy is called. */
  readonly policy: string
  /** Who asks through them, if an attempt has several seats. */
  readonly seat?: string
}

/** Makes the ways to ask. */
function makeHooks({ capture: shared, signal, policy, seat = '' }: HookOptions): Hooks {
  const capture: HookOptions['capture'] = {
    respond: (request, call) => shared.respond(request, { ...call, seat }),
    countTokens: request => shared.countTokens(request, { seat }),
  }
  const { respond } = capture
  const models = aiSdkModels({ respond, signal, modelId: policy })
  return {
    model: models.v3,
    models,
    fetch: agentFetch({ capture, signal, model: policy }),
    modelProvider: agentsModelProvider({ respond, signal }),
    speaker: capturedSpeaker(policy, respond),
  }
}

/** The ways to ask of an attempt, and those of each seat it names. */
export function makeSeatHooks(
  options: HookOptions,
  seats: readonly string[] = [],
): Hooks & { readonly seats: Readonly<Record<string, Hooks>> } {
  const bySeat = seats.map(seat => [seat, makeHooks({ ...options, seat })] as const)
  return { ...makeHooks(options), seats: Object.fromEntries(bySeat) }
}

/** The policy of an attempt as somebody to speak with. */
function capturedSpeaker(name: string, respond: Capture['respond']): Speaker {
  return {
    name,
    async say(messages, { signal, tools = [], maxTokens, temperature }) {
      const own = {
        ...(maxTokens !== undefined && { maxTokens }),
        ...(temperature !== undefined && { temperature }),
      }
      // Copies both ways: what was said stays as it was, whatever the caller does with its list afterwards.
      const asked = { messages: structuredClone(messages), tools, ...own }
      const [answer] = await respond(asked, { signal })
      const { message, finish, usage } = answer!
      return {
        message: structuredClone(message),
        finish: finish === 'length' ? 'length' : 'stop',
        usage,
      }
    },
  }
}
