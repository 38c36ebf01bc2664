// tau-bench's own tools, interpreted from a checkout as tau2-bench's are: how fast they are, and whether they answer
// to every action of every task as the port does.
import { existsSync, readFileSync } from 'node:fs'
import { PythonError } from '@espalier/text/python'
import type { TauDomain } from '../../src/worlds/tau/domain.ts'
import { makeTauWorld } from '../../src/worlds/tau/world.ts'
import { attributeOf } from '../../src/worlds/tau2/program/attributes.ts'
import { call } from '../../src/worlds/tau2/program/call.ts'
import { copyDeeply } from '../../src/worlds/tau2/program/library/copy.ts'
import { loadProgram } from '../../src/worlds/tau2/program/program.ts'
import { str } from '../../src/worlds/tau2/program/show.ts'
import {
  type Dict,
  Module,
  Native,
  ProgramClass,
  type Value,
} from '../../src/worlds/tau2/program/values.ts'
import { Versions } from '../../src/worlds/tau2/program/versions.ts'

/** What the interpreter did with the actions of all tasks. */
export interface Interpreted {
  readonly calls: number
  /** Calls that the port answers in the same words. */
  readonly agreed: number
  readonly callsPerSecond: number
}

const abc = new Module(
  'abc',
  new Map<string, Value>([
    ['ABC', new ProgramClass({ name: 'ABC', module: 'abc' })],
    ['abstractmethod', new Native('abstractmethod', ([called]) => called as Value)],
  ]),
)

type Invoke = (name: string, kwargs: ReadonlyMap<string, Value>) => string

/** The tools of a domain over one database of theirs. */
function makeTools(root: string, domain: TauDomain, data: Dict): Invoke {
  const program = loadProgram({
    source: name => {
      const path = `${root}/${name.replaceAll('.', '/')}.py`
      return existsSync(path) ? readFileSync(path, 'utf8') : undefined
    },
    modules: [abc],
    randomHex: () => '0'.repeat(32),
  })
  const tools = new Map(
    domain.tools.map(({ function: { name } }) => {
      const module = program.load(`tau_bench.envs.${domain.name}.tools.${name}`)
      const type = name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())
      return [name, module.scope.get(type) as Value]
    }),
  )
  return (name, kwargs) => {
    try {
      return str(call(attributeOf(tools.get(name) as Value, 'invoke'), [data], kwargs))
    } catch (error) {
      if (error instanceof PythonError) return `Error: ${error.message}`
      throw error
    }
  }
}

const ROUNDS = 5

/** Does the actions of all tasks of a domain with its own tools. */
export function measureInterpreted(root: string, domain: TauDomain): Interpreted {
  const tables = domain.tables.names.map(
    name => [name, copyDeeply(new Map(domain.tables.table(name)) as Dict)] as const,
  )
  const data: Dict = new Map(tables)
  const invoke = makeTools(root, domain, data)
  const versions = new Versions()
  versions.share([data])
  const tasks = Object.values(domain.tasks).flat()
  let calls = 0
  let agreed = 0
  const doAll = (isCompared: boolean): void => {
    for (const task of tasks) {
      const world = isCompared ? makeTauWorld(domain, task) : undefined
      versions.within(versions.branch(versions.root), () => {
        for (const action of task.actions) {
          const answer = invoke(action.name, action.kwargs as ReadonlyMap<string, Value>)
          const step = world?.step(action)
          if (step?.kind === 'observed' && step.observation === answer) agreed++
          calls++
        }
      })
      versions.enter(versions.root)
    }
  }
  doAll(true)
  const compared = calls
  const before = process.cpuUsage()
  for (let round = 0; round < ROUNDS; round++) doAll(false)
  const { user, system } = process.cpuUsage(before)
  return { calls: compared, agreed, callsPerSecond: ((calls - compared) * 1e6) / (user + system) }
}
