import { parseJson } from '@espalier/text/python'
import type { Dict, Value } from './program/values.ts'

/** Who asks for a tool. */
export type Requestor = 'assistant' | 'user'

/** A method of a toolkit that a task runs. */
export interface FunctionCall {
  readonly env_type: Requestor
  readonly func_name: string
  readonly arguments: Dict
}

/** A method that must return a certain bool at the end. */
export interface EnvAssertion extends FunctionCall {
  readonly assert_value: boolean
  readonly message: string | null
}

/** The state of a world before an attempt. */
export interface InitialState {
  readonly agentData: Dict | null
  readonly userData: Dict | null
  readonly actions: readonly FunctionCall[]
  readonly history: readonly Dict[]
}

/** A call that a right solution makes. */
export interface GoldenAction {
  readonly action_id: string
  readonly requestor: Requestor
  readonly name: string
  readonly arguments: Dict
  readonly compare_args: readonly string[] | null
}

/** What a reward may be based on. */
export type RewardBasis = 'DB' | 'ENV_ASSERTION' | 'NL_ASSERTION' | 'ACTION' | 'COMMUNICATE'

/** When a task counts as solved. `null` is not the same as an empty list. */
export interface Criteria {
  readonly actions: readonly GoldenAction[] | null
  readonly envAssertions: readonly EnvAssertion[] | null
  readonly communicateInfo: readonly string[] | null
  readonly nlAssertions: readonly string[] | null
  readonly basis: readonly RewardBasis[]
}

/** Who the user is and wants. */
export interface Scenario {
  readonly persona: string | null
  readonly instructions: string | StructuredInstructions
}

/** Instructions by topic. */
export interface StructuredInstructions {
  readonly domain: string
  readonly reasonForCall: string
  readonly knownInfo: string | null
  readonly unknownInfo: string | null
  readonly taskInstructions: string
}

/** A problem of tau2-bench. */
export interface Tau2Task {
  readonly id: string
  readonly scenario: Scenario
  readonly ticket: string | null
  readonly initialState: InitialState | null
  readonly criteria: Criteria | null
  readonly requiredDocuments: readonly string[]
  /** The tools the user may use; `null` for all. */
  readonly userTools: readonly string[] | null
  /** As the file has it. */
  readonly source: Dict
}

/** Reads a file of tasks. */
export function readTasks(text: string): readonly Tau2Task[] {
  const read = parseJson(text) as Value
  const list = read instanceof Map && read.has('tasks') ? read.get('tasks') : read
  if (!Array.isArray(list)) throw new Error('A file of tasks holds a list.')
  return list.map((task, index) => readTask(task, String(index)))
}

/** Reads one task; `where` names it until its id is known. */
export function readTask(source: Value, where: string): Tau2Task {
  if (!(source instanceof Map)) throw new Error(`Task ${where} is no object.`)
  const id = textIn(source, 'id', where)
  const scenario = dictIn(source, 'user_scenario', id)
  if (scenario === null) throw new Error(`Task ${id} has no user_scenario.`)
  return {
    id,
    scenario: readScenario(scenario, id),
    ticket: optional(source, 'ticket', 'string', id) as string | null,
    initialState: mapNull(dictIn(source, 'initial_state', id), state =>
      readInitialState(state, id),
    ),
    criteria: mapNull(dictIn(source, 'evaluation_criteria', id), criteria =>
      readCriteria(criteria, id),
    ),
    requiredDocuments: (listIn(source, 'required_documents', id) ?? []) as string[],
    userTools: listIn(source, 'user_tools', id) as string[] | null,
    source,
  }
}

const mapNull = <T, R>(value: T | null, read: (value: T) => R): R | null =>
  value === null ? null : read(value)

function optional(dict: Dict, key: string, type: 'string' | 'boolean', where: string): Value {
  const value = dict.get(key)
  if (value === undefined || value === null) return null
  if (typeof value === type) return value
  throw new Error(`Task ${where}: ${key} is no ${type}.`)
}

function textIn(dict: Dict, key: string, where: string): string {
  const text = optional(dict, key, 'string', where)
  if (text === null) throw new Error(`Task ${where} has no ${key}.`)
  return text as string
}

function dictIn(dict: Dict, key: string, where: string): Dict | null {
  const value = dict.get(key)
  if (value === undefined || value === null) return null
  if (value instanceof Map) return value
  throw new Error(`Task ${where}: ${key} is no object.`)
}

function listIn(dict: Dict, key: string, where: string): Value[] | null {
  const value = dict.get(key)
  if (value === undefined || value === null) return null
  if (Array.isArray(value)) return value
  throw new Error(`Task ${where}: ${key} is no list.`)
}

function readScenario(scenario: Dict, id: string): Scenario {
  const persona = optional(scenario, 'persona', 'string', id) as string | null
  const instructions = scenario.get('instructions')
  if (typeof instructions === 'string') return { persona, instructions }
  if (!(instructions instanceof Map)) throw new Error(`Task ${id} has no instructions.`)
  return {
    persona,
    instructions: {
      domain: textIn(instructions, 'domain', id),
      reasonForCall: textIn(instructions, 'reason_for_call', id),
      knownInfo: optional(instructions, 'known_info', 'string', id) as string | null,
      unknownInfo: optional(instructions, 'unknown_info', 'string', id) as string | null,
      taskInstructions: textIn(instructions, 'task_instructions', id),
    },
  }
}

function readInitialState(state: Dict, id: string): InitialState {
  const data = dictIn(state, 'initialization_data', id)
  return {
    agentData: data && dictIn(data, 'agent_data', id),
    userData: data && dictIn(data, 'user_data', id),
    actions: (listIn(state, 'initialization_actions', id) ?? []).map(action =>
      readFunctionCall(action as Dict, id),
    ),
    history: (listIn(state, 'message_history', id) ?? []) as Dict[],
  }
}

function requestorIn(dict: Dict, key: string, where: string): Requestor {
  const side = optional(dict, key, 'string', where) ?? 'assistant'
  if (side === 'assistant' || side === 'user') return side
  throw new Error(`Task ${where}: ${key} is neither assistant nor user.`)
}

function readFunctionCall(call: Dict, id: string): FunctionCall {
  return {
    env_type: requestorIn(call, 'env_type', id),
    func_name: textIn(call, 'func_name', id),
    arguments: dictIn(call, 'arguments', id) ?? new Map(),
  }
}

const BASES: readonly string[] = ['DB', 'ENV_ASSERTION', 'NL_ASSERTION', 'ACTION', 'COMMUNICATE']

function readCriteria(criteria: Dict, id: string): Criteria {
  const basis = listIn(criteria, 'reward_basis', id) ?? ['DB', 'COMMUNICATE']
  const unknown = basis.find(one => !BASES.includes(one as string))
  if (unknown !== undefined)
    throw new Error(`Task ${id} has a reward_basis unknown here: ${String(unknown)}.`)
  return {
    actions: mapNull(listIn(criteria, 'actions', id), list =>
      list.map(action => readAction(action as Dict, id)),
    ),
    envAssertions: mapNull(listIn(criteria, 'env_assertions', id), list =>
      list.map(one => readAssertion(one as Dict, id)),
    ),
    communicateInfo: listIn(criteria, 'communicate_info', id) as string[] | null,
    nlAssertions: listIn(criteria, 'nl_assertions', id) as string[] | null,
    basis: basis as RewardBasis[],
  }
}

function readAssertion(assertion: Dict, id: string): EnvAssertion {
  return {
    ...readFunctionCall(assertion, id),
    assert_value: optional(assertion, 'assert_value', 'boolean', id) !== false,
    message: optional(assertion, 'message', 'string', id) as string | null,
  }
}

/** Reads a golden action of a task. */
function readAction(action: Dict, id: string): GoldenAction {
  return {
    action_id: textIn(action, 'action_id', id),
    requestor: requestorIn(action, 'requestor', id),
    name: textIn(action, 'name', id),
    arguments: dictIn(action, 'arguments', id) ?? new Map(),
    compare_args: listIn(action, 'compare_args', id) as string[] | null,
  }
}
