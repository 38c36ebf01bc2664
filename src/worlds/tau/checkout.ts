import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { PythonDict, PythonValue } from '@espalier/text/python'
import { parseJson } from '@espalier/text/python'
import { type DomainName, layouts, type TauPrompts } from './domain.ts'
import { knownFiles } from './known-files.ts'
import {
  type Construct,
  type Construction,
  readAssignedLiteral,
  readAssignment,
  readNames,
  readTemplates,
  readToolSchema,
} from './python-source.ts'

/** A domain as read from its files, in Python's values: what a packed folder stores. */
export interface DomainSource {
  readonly tables: ReadonlyMap<string, PythonDict>
  readonly tools: readonly PythonDict[]
  readonly wiki: string
  readonly rules: readonly PythonValue[]
  readonly tasks: ReadonlyMap<string, readonly PythonDict[]>
  readonly prompts: TauPrompts
  readonly fewShots: readonly string[]
  readonly unfamiliar: readonly string[]
}

/** Reads a domain from a checkout of tau-bench. Python sources are read as data, never run. */
export async function readCheckout(root: string, name: DomainName): Promise<DomainSource> {
  const unfamiliar: string[] = []
  const read = (path: string): Promise<string> => readChecked(root, path, unfamiliar)
  const folder = `tau_bench/envs/${name}`
  const { tables, splits } = layouts[name]
  const rows = new Map<string, PythonDict>()
  for (const table of tables) {
    rows.set(table, asDict(parseJson(await read(`${folder}/data/${table}.json`)), table))
  }
  const tasks = new Map<string, readonly PythonDict[]>()
  for (const [split, variable] of Object.entries(splits)) {
    const path = `${folder}/tasks_${split}.py`
    tasks.set(split, await within(path, async () => readTasks(await read(path), variable)))
  }
  return {
    tables: rows,
    tools: await readTools(`${folder}/tools`, read),
    wiki: await read(`${folder}/wiki.md`),
    rules: readAssignedLiteral(await read(`${folder}/rules.py`), 'RULES') as PythonValue[],
    tasks,
    prompts: await readPrompts(read),
    fewShots: await readFewShots(root, name),
    unfamiliar,
  }
}

type Read = (path: string) => Promise<string>

async function readChecked(root: string, path: string, unfamiliar: string[]): Promise<string> {
  const bytes = await readFile(join(root, path))
  const known = knownFiles.get(path)
  if (known !== undefined && createHash('sha256').update(bytes).digest('hex') !== known) {
    unfamiliar.push(path)
  }
  return bytes.toString('utf8')
}

/** Adds the file to what went wrong in it. */
async function within<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    throw new Error(`${path}: ${(cause as Error).message}`, { cause })
  }
}

function asDict(value: PythonValue, what: string): PythonDict {
  if (value instanceof Map) return value
  throw new Error(`${what} is not a dict.`)
}

/** Upstream's tasks; their field `annotator`, who wrote them, is dropped. */
function readTasks(source: string, variable: string): readonly PythonDict[] {
  return readAssignment(source, variable).map(task => {
    const fields = fieldsOf(task, 'Task')
    const actions = (fields.get('actions') ?? []) as readonly Construction[]
    return new Map<string, PythonValue>([
      ['user_id', (fields.get('user_id') ?? null) as PythonValue],
      ['actions', actions.map(action => new Map(fieldsOf(action, 'Action')) as PythonDict)],
      ['instruction', (fields.get('instruction') ?? null) as PythonValue],
      ['outputs', (fields.get('outputs') ?? []) as PythonValue],
    ])
  })
}

function fieldsOf({ name, fields }: Construction, wanted: string): ReadonlyMap<string, Construct> {
  if (name === wanted) return fields
  throw new Error(`Only ${wanted}(…) is read here, found ${name}(…).`)
}

async function readTools(folder: string, read: Read): Promise<readonly PythonDict[]> {
  const names = readNames(await read(`${folder}/__init__.py`), 'ALL_TOOLS')
  const schemas: PythonDict[] = []
  for (const name of names) {
    const path = `${folder}/${fileName(name)}.py`
    schemas.push(await within(path, async () => readToolSchema(await read(path))))
  }
  return schemas
}

/** `CancelPendingOrder` is defined in `cancel_pending_order.py`. */
function fileName(className: string): string {
  return className.replace(/(?!^)([A-Z])/g, '_$1').toLowerCase()
}

async function readPrompts(read: Read): Promise<TauPrompts> {
  const users = readTemplates(await read('tau_bench/envs/user.py'))
  const policies = readTemplates(await read('tau_bench/agents/chat_react_agent.py'))
  const [plain, react, verify, reflect] = users
  const [reactPolicy, actPolicy] = policies
  if (reflect === undefined || actPolicy === undefined) {
    throw new Error(
      `Expected 4 prompts in tau_bench/envs/user.py and 2 in tau_bench/agents/chat_react_agent.py, found ${users.length} and ${policies.length}.`,
    )
  }
  return {
    user: { plain: plain as string, react: react as string },
    supervisor: { verify: verify as string, reflect },
    policy: { react: reactPolicy as string, act: actPolicy },
  }
}

/** Displays of solved tasks; a checkout may lack them, and only the few-shot agent needs them. */
async function readFewShots(root: string, name: DomainName): Promise<readonly string[]> {
  const domain = name === 'retail' ? 'Retail' : 'Airline'
  const path = join(root, 'few_shot_data', `Mock${domain}DomainEnv-few_shot.jsonl`)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  return text
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => asDict(parseJson(line), 'a few-shot line').get('messages_display') as string)
}
