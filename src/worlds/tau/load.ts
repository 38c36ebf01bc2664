import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ToolDefinition } from '@espalier/text'
import {
  dumps,
  fromJavaScript,
  type PythonDict,
  type PythonValue,
  parseJson,
  toJavaScript,
} from '@espalier/text/python'
import { fromHome } from '../../base/core/names/home-path.ts'
import { type DomainSource, readCheckout } from './checkout.ts'
import { type DomainName, domainNames, layouts, type TauDomain, toolsOf } from './domain.ts'
import { intern } from './intern.ts'
import { itemOf } from './operations.ts'
import { type Row, Tables } from './tables.ts'
import type { TauAction, TauTask } from './task.ts'

/** Which domain to load, from where. */
export interface LoadTauOptions {
  /** The root of a checkout of sierra-research/tau-bench, or a folder written by `packTau`. */
  readonly root: string
  readonly domain: DomainName
}

/**
 * Loads a domain, to be shared by all worlds opened in it: also those of later runs of this process, as long as it is
 * still in memory and its files are as they were.
 */
export async function loadTau({ root: named, domain: name }: LoadTauOptions): Promise<TauDomain> {
  const root = fromHome(named)
  const key = `${name} of ${root}`
  const files = await describeFiles(root, name)
  const known = loaded.get(key)
  const kept = known?.files === files ? known.domain.deref() : undefined
  if (kept) return kept
  const domain = toDomain(name, await readDomain(root, name))
  loaded.set(key, { files, domain: new WeakRef(domain) })
  return domain
}

/** Domains that were loaded, with what describes their files. */
const loaded = new Map<string, { readonly files: string; readonly domain: WeakRef<TauDomain> }>()

/** Names, times and sizes of all files that a domain may be read from. */
async function describeFiles(root: string, name: DomainName): Promise<string> {
  const paths = [join(root, `${name}.json`)]
  for (const folder of [join(root, 'tau_bench'), join(root, 'few_shot_data')]) {
    if (!existsSync(folder)) continue
    for (const file of await readdir(folder, { recursive: true })) paths.push(join(folder, file))
  }
  const stats = await Promise.all(paths.map(path => stat(path).catch(() => undefined)))
  return paths.map((path, at) => `${path} ${stats[at]?.mtimeMs} ${stats[at]?.size}`).join('\n')
}

async function readDomain(root: string, name: DomainName): Promise<DomainSource> {
  const packed = join(root, `${name}.json`)
  if (existsSync(packed)) return fromPacked(parseJson(await readFile(packed, 'utf8')))
  if (existsSync(join(root, 'tau_bench/envs', name))) return readCheckout(root, name)
  throw new Error(
    `No tau-bench ${name} in ${root}: neither tau_bench/envs/${name} of a checkout nor ${name}.json of a packed folder.`,
  )
}

/** Packs the domains of a checkout into a folder that loads without it. */
export async function packTau(checkout: string, folder: string): Promise<readonly DomainName[]> {
  const present = domainNames.filter(name => existsSync(join(checkout, 'tau_bench/envs', name)))
  if (present.length === 0) {
    throw new Error(`No tau-bench checkout in ${checkout}: it has no tau_bench/envs.`)
  }
  await mkdir(folder, { recursive: true })
  for (const name of present) {
    const source = await readCheckout(checkout, name)
    await writeFile(join(folder, `${name}.json`), dumps(toPacked(source)))
  }
  return present
}

/** The version of the packed form. */
const FORMAT = 'espalier-tau-1'

function toPacked(source: DomainSource): PythonDict {
  return new Map<string, PythonValue>([
    ['format', FORMAT],
    ['tables', new Map(source.tables)],
    ['tools', source.tools],
    ['wiki', source.wiki],
    ['rules', source.rules],
    ['tasks', new Map(source.tasks)],
    ['prompts', fromJavaScript(source.prompts)],
    ['few_shots', source.fewShots],
    ['unfamiliar', source.unfamiliar],
  ])
}

function fromPacked(packed: PythonValue): DomainSource {
  if (!(packed instanceof Map) || packed.get('format') !== FORMAT) {
    throw new Error(`Not a packed tau-bench domain of format ${FORMAT}; pack the checkout again.`)
  }
  return {
    tables: itemOf(packed, 'tables') as ReadonlyMap<string, PythonDict>,
    tools: itemOf(packed, 'tools') as readonly PythonDict[],
    wiki: itemOf(packed, 'wiki') as string,
    rules: itemOf(packed, 'rules') as readonly PythonValue[],
    tasks: itemOf(packed, 'tasks') as ReadonlyMap<string, readonly PythonDict[]>,
    prompts: toJavaScript(itemOf(packed, 'prompts')) as DomainSource['prompts'],
    fewShots: itemOf(packed, 'few_shots') as readonly string[],
    unfamiliar: itemOf(packed, 'unfamiliar') as readonly string[],
  }
}

function toDomain(name: DomainName, source: DomainSource): TauDomain {
  const tools = source.tools.map(tool => toJavaScript(tool) as ToolDefinition)
  const unknown = tools.filter(tool => !toolsOf(name, false).has(tool.function.name))
  if (unknown.length > 0) {
    const names = unknown.map(tool => tool.function.name).join(', ')
    throw new Error(`The checkout's ${name} has tools this port does not know: ${names}.`)
  }
  return {
    name,
    tables: new Tables(checkTables(name, source.tables)),
    tools,
    toolsText: dumps(source.tools),
    wiki: source.wiki,
    rules: source.rules as readonly string[],
    tasks: Object.fromEntries(
      Array.from(source.tasks, ([split, tasks]) => [split, tasks.map(toTask)]),
    ),
    prompts: source.prompts,
    fewShots: source.fewShots,
    unfamiliar: source.unfamiliar,
  }
}

function checkTables(
  name: DomainName,
  tables: ReadonlyMap<string, PythonDict>,
): ReadonlyMap<string, ReadonlyMap<string, Row>> {
  for (const table of layouts[name].tables) {
    const rows = tables.get(table)
    if (rows === undefined) throw new Error(`The ${name} domain has no table ${table}.`)
    for (const [id, row] of rows) {
      if (!(row instanceof Map)) throw new Error(`${name} ${table}: ${id} is not a dict.`)
    }
  }
  return intern(new Map(tables)) as unknown as ReadonlyMap<string, ReadonlyMap<string, Row>>
}

function toTask(task: PythonDict, index: number): TauTask {
  const instruction = itemOf(task, 'instruction')
  const userId = itemOf(task, 'user_id')
  const outputs = itemOf(task, 'outputs')
  if (typeof instruction !== 'string' || typeof userId !== 'string' || !Array.isArray(outputs)) {
    throw new Error(`Task ${index} lacks a user_id, an instruction or outputs.`)
  }
  const actions = itemOf(task, 'actions') as readonly PythonValue[]
  return {
    userId,
    instruction,
    actions: actions.map(action => toAction(action, index)),
    outputs: outputs as readonly string[],
  }
}

function toAction(action: PythonValue, task: number): TauAction {
  const name = itemOf(action, 'name')
  const kwargs = itemOf(action, 'kwargs')
  if (typeof name !== 'string' || !(kwargs instanceof Map)) {
    throw new Error(`An action of task ${task} lacks a name or kwargs.`)
  }
  return { name, kwargs }
}
