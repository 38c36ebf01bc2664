import { dumps, fromJavaScript, type PythonDict } from '@espalier/text/python'
import type { UserStrategy } from '../../../src/engine/environments/users/strategy.ts'
import { tauAgent } from '../../../src/worlds/tau/agents.ts'
import type { TauDomain } from '../../../src/worlds/tau/domain.ts'
import { policyInstruction, userPrompts } from '../../../src/worlds/tau/prompts.ts'
import { taskToPython } from '../../../src/worlds/tau/results.ts'
import { makeTauWorld } from '../../../src/worlds/tau/world.ts'
import {
  differ,
  firstOf,
  lengthOf,
  matchesText,
  type Problem,
  sha256,
  type TauRow,
  type TauSource,
  taskOf,
} from './source.ts'

export async function checkTask(row: TauRow, source: TauSource): Promise<Problem> {
  const task = taskOf(await source.domain(row.domain), row.split, row.task)
  return firstOf(
    differ('user_id', row.user_id, task.userId),
    differ('instruction', row.instruction_sha256, sha256(task.instruction)),
    differ('instruction_len', row.instruction_len, lengthOf(task.instruction)),
    differ('outputs', row.outputs, task.outputs),
    differ(
      'actions',
      row.actions,
      task.actions.map(({ name }) => name),
    ),
    differ('json', row.json_sha256, sha256(dumps(taskToPython(task)))),
  )
}

export async function checkStatic(row: TauRow, source: TauSource): Promise<Problem> {
  const problems: Problem[] = []
  for (const name of ['retail', 'airline']) {
    const domain = await source.domain(name)
    problems.push(checkDomain(row[name], domain))
    for (const [split, tasks] of Object.entries(domain.tasks)) {
      const wanted = row.splits[`${name}-${split}`]
      if (wanted === undefined) continue
      const all = sha256(dumps(tasks.map(taskToPython)))
      problems.push(
        differ(`${name}-${split}`, wanted.count, tasks.length),
        differ(`${name}-${split} tasks`, wanted.all_tasks_json_sha256, all),
      )
    }
  }
  problems.push(checkPrompts(row, await source.domain('retail')))
  return firstOf(...problems)
}

function checkDomain(wanted: TauRow, domain: TauDomain): Problem {
  const task = Object.values(domain.tasks)[0]?.[0]
  if (task === undefined) return `${domain.name} has no task`
  const prompt = (kind: 'react' | 'act'): string => sha256(tauAgent(domain, { kind }).system)
  return firstOf(
    differ('initial hash', wanted.initial_data_hash, makeTauWorld(domain, task).hash()),
    ...Object.entries(wanted.data_json_dumps_sha256).map(([table, digest]) =>
      differ(table, digest, sha256(dumps(domain.tables.table(table) as PythonDict))),
    ),
    differ('wiki', wanted.wiki_sha256, sha256(domain.wiki)),
    differ('rules', wanted.rules_json_sha256, sha256(dumps(domain.rules))),
    differ('tools', wanted.tools_info_json_sha256, sha256(domain.toolsText)),
    ...wanted.tools.map((tool: TauRow, index: number) =>
      differ(tool.name, tool.info_json_sha256, sha256(dumps(fromJavaScript(domain.tools[index])))),
    ),
    differ('react prompt', wanted.react_prompt_sha256, prompt('react')),
    differ('act prompt', wanted.act_prompt_sha256, prompt('act')),
  )
}

function checkPrompts(row: TauRow, { prompts }: TauDomain): Problem {
  const instructions = { none: undefined, X: 'X', empty: '' }
  const problems: Problem[] = []
  const compare = (name: string, wanted: unknown, got: string): void => {
    if (!matchesText(wanted, got)) problems.push(`the prompt ${name} differs`)
  }
  compare('react', row.react_instruction, policyInstruction(prompts, 'react'))
  compare('act', row.act_instruction, policyInstruction(prompts, 'act'))
  for (const [strategy, cases] of Object.entries<TauRow>(row.user_system_prompts)) {
    for (const [name, instruction] of Object.entries(instructions)) {
      const built = userPrompts(prompts).system(strategy as UserStrategy, instruction)
      compare(`${strategy} ${name}`, cases[name], built)
    }
  }
  return firstOf(...problems)
}
