import type { PythonDict, PythonValue } from '@espalier/text/python'
import { compareText, dumps, equals } from '@espalier/text/python'
import type { Database } from '../database.ts'
import { itemOf, lower } from '../operations.ts'
import { perTables, type Tables } from '../tables.ts'
import { type TauTool, tauTool } from '../tool.ts'

/** The first user of every address, and the users of every name, in the order of the file. */
const people = perTables(tables => {
  const byEmail = new Map<string, string>()
  const byName = new Map<string, Map<string, string[]>>()
  for (const [id, user] of tables.table('users')) {
    const email = lower(itemOf(user, 'email'))
    if (!byEmail.has(email)) byEmail.set(email, id)
    const firstName = lower(itemOf(itemOf(user, 'name'), 'first_name'))
    const lastName = lower(itemOf(itemOf(user, 'name'), 'last_name'))
    const namesakes = byName.get(firstName) ?? new Map<string, string[]>()
    byName.set(firstName, namesakes)
    namesakes.set(lastName, [...(namesakes.get(lastName) ?? []), id])
  }
  return { byEmail, byName }
})

const NO_USER = 'Error: user not found'

const hasUsers = (tables: Tables): boolean => tables.table('users').size > 0

function findByEmail({ tables }: Database, email: PythonValue): string {
  // Python lowers the address once per user, so without users a wrong type goes unnoticed.
  if (!hasUsers(tables)) return NO_USER
  return people(tables).byEmail.get(lower(email)) ?? NO_USER
}

interface NameAndZip {
  readonly first_name: PythonValue
  readonly last_name: PythonValue
  readonly zip: PythonValue
}

function findByName(database: Database, { first_name, last_name, zip }: NameAndZip): string {
  if (!hasUsers(database.tables)) return NO_USER
  const namesakes = people(database.tables).byName.get(lower(first_name))
  // Python looks at the last name only if the first name was right.
  for (const id of namesakes?.get(lower(last_name)) ?? []) {
    if (equals(itemOf(itemOf(database.at('users', id), 'address'), 'zip'), zip)) return id
  }
  return NO_USER
}

const productTypes = perTables(tables => {
  const byName: PythonDict = new Map()
  for (const product of tables.table('products').values()) {
    byName.set(itemOf(product, 'name') as string, itemOf(product, 'product_id'))
  }
  const names = [...byName.keys()] as string[]
  return dumps(new Map(names.sort(compareText).map(name => [name, itemOf(byName, name)])))
})

/** A tool that shows one row of a table. */
function details(noun: string, table: string): TauTool {
  const parameter = `${noun}_id`
  return tauTool(`get_${noun}_details`, [parameter], (database, input) => {
    const row = database.find(table, input[parameter] as PythonValue)
    return row === undefined ? `Error: ${noun} not found` : database.textOf(row)
  })
}

/** The retail tools that only look. */
export const retailLookups: readonly TauTool[] = [
  tauTool('find_user_id_by_email', ['email'], (database, { email }) =>
    findByEmail(database, email),
  ),
  tauTool('find_user_id_by_name_zip', ['first_name', 'last_name', 'zip'], findByName),
  details('order', 'orders'),
  details('product', 'products'),
  details('user', 'users'),
  tauTool('list_all_product_types', [], ({ tables }) => productTypes(tables)),
]
