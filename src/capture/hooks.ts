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
  /** The same by version of the contract, for older and newer releases. */
  readonly models: { readonly [Version in 'v2' | 'v3' | 'v4']: AgentModel<Version> }
  /** For the official clients of OpenAI, Anthropic and Google; no request leaves the process. */
  readonly fetch: typeof fetch
  /** For the OpenAI Agents SDK: `new Runner({ modelProvider })`. */
  readonly modelProvider: AgentsModelProvider
}

/** What hooks lead to. */
export interface HookOptions {
  readonly capture: Pick<Capture, 'respond' | 'countTokens'>
  readonly signal: AbortSignal
  /** What the policy is called. */
  readonly policy: string
}

/** Opens the ways to ask. */
export function openHooks({ capture, signal, policy }: HookOptions): Hooks {
  const respond: Capture['respond'] = (request, call) => capture.respond(request, call)
  const models = aiSdkModels({ respond, signal, modelId: policy })
  return {
    model: models.v3,
    models,
    fetch: agentFetch({ capture, signal, model: policy }),
    modelProvider: agentsModelProvider({ respond, signal }),
  }
}
