import type { AssistantMessage, Message, ToolDefinition } from '@espalier/text'
import { textOf } from '@espalier/text'
import type { PythonValue } from '@espalier/text/python'
import { JsonError, PythonError, parseJson, repr, typeName } from '@espalier/text/python'
import type { TauDomain } from './domain.ts'
import { itemOf, iterate, typeError } from './operations.ts'
import { policyInstruction } from './prompts.ts'
import { RESPOND, type TauAction } from './task.ts'

/** The ways tau-bench lets a model act. */
export const agentKinds = ['tool-calling', 'few-shot', 'react', 'act'] as const

/** One way to let a model act. */
export type AgentKind = (typeof agentKinds)[number]

/** How a model is instructed, and how its answers are read. */
export interface TauAgent {
  readonly kind: AgentKind
  readonly system: string
  /** Tools to offer natively; none if the prompt itself describes them. */
  readonly tools: readonly ToolDefinition[]
  /** The action a message asks for; raises what the original raises. */
  toAction(message: AssistantMessage): TauAction
  /** The messages that follow an action. */
  observe(step: AgentStep): readonly [AssistantMessage, Message]
}

/** An action with the message that asked for it and what came of it. */
export interface AgentStep {
  readonly message: AssistantMessage
  readonly action: TauAction
  readonly observation: string
}

/** Builds an agent of a domain. `fewShots` are the displays already chosen for this attempt. */
export function tauAgent(
  domain: TauDomain,
  { kind, fewShots = [] }: { readonly kind: AgentKind; readonly fewShots?: readonly string[] },
): TauAgent {
  if (kind === 'tool-calling' || kind === 'few-shot') {
    const system = kind === 'few-shot' ? `${domain.wiki}\n\n${joinFewShots(fewShots)}` : domain.wiki
    return { kind, system, tools: domain.tools, toAction: toCalledAction, observe: observeCall }
  }
  const system = `${domain.wiki}\n#Available tools\n${domain.toolsText}${policyInstruction(domain.prompts, kind)}`
  return { kind, system, tools: [], toAction: toWrittenAction, observe: observeText }
}

function joinFewShots(displays: readonly string[]): string {
  return displays.map((display, index) => `Example ${index + 1}:\n${display}`).join('\n\n')
}

/** Draws displays for one attempt without repeating any. */
export function chooseFewShots(
  displays: readonly string[],
  { count = 5, random }: { readonly count?: number; readonly random: () => number },
): readonly string[] {
  if (displays.length === 0) throw new Error('Few shot displays are empty')
  if (displays.length < count) {
    throw new Error(
      `Few shot displays are less than num_few_shots requested: ${displays.length} < ${count}`,
    )
  }
  const pool = [...displays]
  return Array.from({ length: count }, () => {
    const [chosen] = pool.splice(Math.floor(random() * pool.length), 1)
    return chosen as string
  })
}

/** Only the first call counts; a message without one speaks to the user. */
function toCalledAction({ content, tool_calls: calls }: AssistantMessage): TauAction {
  const call = calls?.[0]?.function
  if (call) return checkAction(call.name, parseJson(call.arguments))
  return respond(content === null ? null : textOf(content))
}

function respond(content: PythonValue): TauAction {
  return { name: RESPOND, kwargs: new Map([['content', content]]) }
}

function toWrittenAction({ content }: AssistantMessage): TauAction {
  if (content === null) {
    throw new PythonError('AttributeError', "'NoneType' object has no attribute 'split'")
  }
  const written = (textOf(content).split('Action:').at(-1) as string).trim()
  let action: PythonValue
  try {
    action = parseJson(written)
  } catch (error) {
    if (error instanceof JsonError) return respond(written)
    throw error
  }
  for (const key of ['name', 'arguments']) {
    if (!isIn(key, action)) throw new PythonError('AssertionError', '')
  }
  return checkAction(itemOf(action, 'name'), itemOf(action, 'arguments'))
}

function isIn(key: string, value: PythonValue): boolean {
  if (typeof value === 'string') return value.includes(key)
  if (value instanceof Map || Array.isArray(value)) return iterate(value).includes(key)
  throw typeError(`argument of type '${typeName(value)}' is not iterable`)
}

/** What pydantic checks of an action, with the words of its version 2.13. */
function checkAction(name: PythonValue, kwargs: PythonValue): TauAction {
  if (typeof name === 'string' && kwargs instanceof Map) return { name, kwargs }
  const problems = [
    ...(typeof name === 'string' ? [] : [problem('name', 'string', name)]),
    ...(kwargs instanceof Map ? [] : [problem('kwargs', 'dict', kwargs)]),
  ]
  const noun = problems.length === 1 ? 'error' : 'errors'
  throw new PythonError(
    'ValidationError',
    `${problems.length} validation ${noun} for Action\n${problems.join('\n')}`,
  )
}

function problem(field: string, kind: 'string' | 'dict', value: PythonValue): string {
  const wanted = kind === 'dict' ? 'dictionary' : kind
  const shown = `[type=${kind}_type, input_value=${shorten(repr(value))}, input_type=${typeName(value)}]`
  return `${field}\n  Input should be a valid ${wanted} ${shown}\n    For further information visit https://errors.pydantic.dev/2.13/v/${kind}_type`
}

const shorten = (text: string): string =>
  text.length <= 50 ? text : `${text.slice(0, 25)}...${text.slice(-24)}`

function observeCall({
  message,
  action,
  observation,
}: AgentStep): readonly [AssistantMessage, Message] {
  const call = message.tool_calls?.[0]
  if (action.name === RESPOND || call === undefined) {
    return [message, { role: 'user', content: observation }]
  }
  // Calls beyond the first were not made, so the conversation does not show them.
  return [
    { ...message, tool_calls: [call] },
    { role: 'tool', tool_call_id: call.id, name: call.function.name, content: observation },
  ]
}

function observeText({
  message,
  action,
  observation,
}: AgentStep): readonly [AssistantMessage, Message] {
  const content = action.name === RESPOND ? observation : `API output: ${observation}`
  return [message, { role: 'user', content }]
}
