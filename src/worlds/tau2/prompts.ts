import type { Block, Statement } from '@espalier/text/python'
import { parseModule } from '@espalier/text/python'
import type { Checkout } from './data/checkout.ts'
import { Frame } from './program/compile/scope.ts'
import { compileBlock } from './program/compile/statement.ts'
import { formatFields } from './program/format.ts'
import { indent } from './program/lines.ts'
import { str } from './program/show.ts'
import { Module, type Value } from './program/values.ts'
import type { GoldenAction, Scenario, Tau2Task } from './task.ts'

/** The original's own prompts, read from the sources of a checkout. */
export class Prompts {
  readonly #checkout: Checkout
  readonly #blocks = new Map<string, Block>()
  readonly #texts = new Map<string, string>()

  constructor(checkout: Checkout) {
    this.#checkout = checkout
  }

  /** A text that a module assigns to a name. */
  text(module: string, name: string): string {
    const key = `${module} ${name}`
    let text = this.#texts.get(key)
    if (text === undefined) {
      text = this.#evaluate(module, name, new Map()) as string
      this.#texts.set(key, text)
    }
    return text
  }

  /** The value of the first assignment to a name, with these names already known. */
  #evaluate(module: string, name: string, names: ReadonlyMap<string, Value>): Value {
    let block = this.#blocks.get(module)
    if (block === undefined) {
      const source = this.#checkout.source(module)
      if (source === undefined) throw new Error(`The checkout has no module ${module}.`)
      block = parseModule(source)
      this.#blocks.set(module, block)
    }
    const assignment = findAssignment(block, name)
    if (assignment === undefined) throw new Error(`${module} assigns nothing to ${name}.`)
    const scope = new Map(names)
    compileBlock([assignment], { module: new Module(module, scope), qualifier: '' })(
      Frame.named(scope),
    )
    return scope.get(name) as Value
  }

  /** The agent's system prompt. */
  agent(policy: string): string {
    return this.#format('SYSTEM_PROMPT', {
      agent_instruction: this.text(AGENT, 'AGENT_INSTRUCTION'),
      domain_policy: policy,
    })
  }

  /** The agent's prompt with the steps of a right solution. */
  groundTruthAgent(policy: string, task: Tau2Task): string {
    return this.#format('SYSTEM_PROMPT_GT', {
      agent_instruction: this.text(AGENT, 'AGENT_GT_INSTRUCTION'),
      domain_policy: policy,
      resolution_steps: (task.criteria?.actions ?? []).map(resolutionStep).join('\n'),
    })
  }

  /** The system prompt of an agent without a user. */
  soloAgent(policy: string, task: Tau2Task): string {
    const instruction = this.text(AGENT, 'AGENT_SOLO_INSTRUCTION')
    return this.#format('SYSTEM_PROMPT_SOLO', {
      agent_instruction: formatFields(
        instruction,
        [],
        new Map([['stop_function_name', SOLO_STOP]]),
      ),
      domain_policy: policy,
      ticket: task.ticket ?? 'None',
    })
  }

  #format(name: string, fields: Readonly<Record<string, string>>): string {
    return formatFields(this.text(AGENT, name), [], new Map(Object.entries(fields)))
  }

  /** The simulated user's system prompt; users with tools get other guidelines. */
  user(scenario: Scenario, { hasTools }: { readonly hasTools: boolean }): string {
    const file = hasTools ? 'simulation_guidelines_tools.md' : 'simulation_guidelines.md'
    const guidelines = this.#checkout
      .data(`tau2/user_simulator/${file}`)
      .replaceAll('<PERSONA_GUIDELINES>', '')
    return formatFields(
      this.text(USER, 'SYSTEM_PROMPT'),
      [],
      new Map([
        ['global_user_sim_guidelines_with_persona', guidelines],
        ['instructions', scenarioText(scenario)],
      ]),
    )
  }

  /** The prompt for a judge of assertions. */
  judge(
    conversation: string,
    assertions: readonly string[],
  ): { readonly system: string; readonly user: string } {
    const names = new Map<string, Value>([
      ['trajectory_str', conversation],
      ['nl_assertions', [...assertions]],
    ])
    return {
      system: this.text(JUDGE, 'system_prompt'),
      user: this.#evaluate(JUDGE, 'user_prompt', names) as string,
    }
  }
}

const AGENT = 'tau2.agent.llm_agent'
const USER = 'tau2.user.user_simulator'
const JUDGE = 'tau2.evaluator.evaluator_nl_assertions'

/** The tool with which an agent without a user ends. */
export const SOLO_STOP = 'done'

function findAssignment(block: Block, name: string): Statement | undefined {
  for (const statement of block) {
    if (
      statement.kind === 'assign' &&
      statement.targets.some(target => target.kind === 'name' && target.name === name)
    ) {
      return statement
    }
    const inner =
      statement.kind === 'class' || statement.kind === 'function'
        ? findAssignment(statement.body, name)
        : undefined
    if (inner) return inner
  }
  return undefined
}

function resolutionStep(
  { requestor, name, arguments: given }: GoldenAction,
  index: number,
): string {
  const shown = Array.from(given, ([key, value]) => `${str(key)}=${str(value)}`).join(', ')
  const verb = requestor === 'user' ? 'Instruct the user to perform' : 'Perform'
  return `[Step ${index + 1}] ${verb} the following action: ${name}(${shown}).`
}

/** A scenario as the user reads it. */
function scenarioText({ persona, instructions }: Scenario): string {
  const lines = persona === null ? [] : ['Persona:', indent(persona, '\t')]
  return [...lines, 'Instructions:', indent(instructionsText(instructions), '\t')].join('\n')
}

function instructionsText(instructions: Scenario['instructions']): string {
  if (typeof instructions === 'string') return instructions
  const { domain, reasonForCall, knownInfo, unknownInfo, taskInstructions } = instructions
  const part = (title: string, text: string): string => `${title}:\n${indent(text, '\t')}`
  return [
    `Domain: ${domain}`,
    part('Reason for call', reasonForCall),
    ...(knownInfo === null ? [] : [part('Known info', knownInfo)]),
    ...(unknownInfo === null ? [] : [part('Unknown info', unknownInfo)]),
    part('Task instructions', taskInstructions),
  ].join('\n')
}
