import { dumps } from '@espalier/text/python'
import { attributeOf } from '../program/attributes.ts'
import { call } from '../program/call.ts'
import type { Modules } from '../program/imports.ts'
import { jsonable } from '../program/library/json.ts'
import { dump } from '../program/models/pydantic.ts'
import { type Dict, Native, ProgramClass, plain, type Value } from '../program/values.ts'

const MANAGERS = [
  ['mobile_data_issues', 'mobile_data_task_manager'],
  ['service_issues', 'service_issues_task_manager'],
  ['mms_issues', 'mms_issue_task_manager'],
] as const

/** Fields that the models got after the file was written. */
const LATER = ['issues', 'required_documents', 'user_tools']

/**
 * The tasks of the telecom domain, to the byte, made as they were made: by the checkout's own
 * generators, which put every combination of causes together. `ids` are those of the split `full`.
 */
export function rebuildTelecomTasks(program: Modules, ids: readonly string[]): string {
  const manager = program.load('tau2.domains.telecom.tasks.manager').scope.get('TaskManager')
  // Skip the generators' own check by playing: their output is known to be right.
  if (manager instanceof ProgramClass)
    manager.attributes.set('verify_task', new Native('verify_task', () => null))
  const made = new Map<Value, Dict>()
  for (const [module, name] of MANAGERS) {
    const of = program.load(`tau2.domains.telecom.tasks.${module}`).scope.get(name) as Value
    const tasks = call(attributeOf(of, 'create_tasks')) as Value[]
    for (const task of tasks) {
      const fields = dump(task) as Dict
      for (const later of LATER) fields.delete(later)
      made.set(fields.get('id') as Value, fields)
    }
  }
  const missing = ids.filter(id => !made.has(id))
  if (missing.length > 0) {
    throw new Error(
      `The generators of the checkout make no telecom task ${missing[0]}; take a whole checkout.`,
    )
  }
  return dumps(plain(ids.map(id => jsonable(made.get(id) as Value))), { indent: 2 })
}
