import { createHash } from 'node:crypto'
import { parseJson } from '@espalier/text/python'
import { Checkout, type CheckoutOptions, domainPath } from './data/checkout.ts'
import { type KnowledgeBase, loadKnowledgeBase, makeKnowledgeKit } from './data/knowledge.ts'
import { bankingPolicy, telecomPolicy } from './data/policy.ts'
import { rebuildTelecomTasks } from './data/rebuild-telecom.ts'
import { DatabaseImage } from './database.ts'
import { frameworkModules, readDataFile } from './framework.ts'
import { call } from './program/call.ts'
import type { Modules } from './program/imports.ts'
import { validateModel } from './program/models/pydantic.ts'
import { loadProgram } from './program/program.ts'
import { type Instance, ProgramClass, type Value } from './program/values.ts'
import { type Version, Versions } from './program/versions.ts'
import { readTask, readTasks, type Tau2Task } from './task.ts'
import { toolsOf } from './toolkit.ts'
import { Tau2World } from './world.ts'

/** The text domains of tau2-bench. */
export const domainNames = [
  'airline',
  'retail',
  'telecom',
  'telecom-workflow',
  'banking_knowledge',
] as const

/** A text domain of tau2-bench. */
export type DomainName = (typeof domainNames)[number]

/** How banking finds its documents; those that need no embedding service. */
export const retrievals = [
  'no_knowledge',
  'full_kb',
  'golden_retrieval',
  'bm25',
  'bm25_grep',
  'grep_only',
] as const

/** How banking finds its documents. */
export type Retrieval = (typeof retrievals)[number]

/** Which domain to load, from where. */
export interface LoadTau2Options extends CheckoutOptions {
  readonly domain: DomainName
  /** Of banking alone. @default 'bm25' */
  readonly retrieval?: Retrieval
  /** Eight hexadecimal digits for the n-th random text of a world. @default digits of a hash */
  readonly draw?: (count: number) => string
}

/** Where the parts of a domain lie in the checkout. */
interface Layout {
  readonly folder: string
  readonly database: string
  readonly model: string
  readonly tools: string
  readonly user?: {
    readonly database?: string
    readonly module: string
    readonly model?: string
    readonly tools: string
  }
  readonly environment?: string
}

const telecom: Layout = {
  folder: 'telecom',
  database: 'db.toml',
  model: 'TelecomDB',
  tools: 'TelecomTools',
  user: {
    database: 'user_db.toml',
    module: 'user_tools',
    model: 'TelecomUserDB',
    tools: 'TelecomUserTools',
  },
  environment: 'TelecomEnvironment',
}

const layouts: Readonly<Record<DomainName, Layout>> = {
  retail: { folder: 'retail', database: 'db.json', model: 'RetailDB', tools: 'RetailTools' },
  airline: { folder: 'airline', database: 'db.json', model: 'FlightDB', tools: 'AirlineTools' },
  telecom,
  'telecom-workflow': telecom,
  banking_knowledge: {
    folder: 'banking_knowledge',
    database: 'db.json',
    model: 'TransactionalDB',
    tools: 'KnowledgeTools',
    user: { module: 'tools', tools: 'KnowledgeUserTools' },
  },
}

/** A domain: the checkout's own toolkits over its database, its policy, its tasks and splits. */
export class Tau2Domain {
  readonly name: DomainName
  readonly checkout: Checkout
  readonly program: Modules
  readonly versions = new Versions()
  readonly environment: Instance
  readonly agent: Instance
  readonly user: Instance | null
  /** The state every world comes from. */
  readonly start: Version
  readonly syncs: boolean
  readonly logsReads: boolean
  readonly retrieval: Retrieval
  readonly knowledge: KnowledgeBase | undefined
  readonly draw: (count: number) => string
  readonly #layout: Layout
  readonly #images = new Map<Value, DatabaseImage>()
  #draw: () => string = () => '00000000'
  readonly #starts = new WeakMap<Tau2Task, Version>()
  #tasks: readonly Tau2Task[] | undefined

  constructor({ domain, retrieval = 'bm25', draw = drawDigits, ...from }: LoadTau2Options) {
    this.name = domain
    this.draw = draw
    this.retrieval = retrieval
    this.checkout = new Checkout(from)
    this.#layout = layouts[domain]
    const { folder } = this.#layout
    if (this.checkout.source(`tau2.domains.${folder}.tools`) === undefined) {
      throw new Error(
        `The checkout in ${this.checkout.root} has no domain ${domain}: src/tau2/domains/${folder} is missing.`,
      )
    }
    const read = (path: string): string => this.checkout.data(path)
    this.program = loadProgram({
      source: name => this.checkout.source(name),
      modules: frameworkModules(read),
      randomHex: () => this.#draw(),
    })
    this.logsReads = domain === 'banking_knowledge'
    this.knowledge = this.logsReads ? loadKnowledgeBase(this.checkout) : undefined
    this.agent = this.#openAgent(read)
    this.user = this.#makeUser(read)
    this.environment = this.#openEnvironment()
    this.syncs = this.#layout.environment !== undefined
    for (const kit of this.user ? [this.agent, this.user] : [this.agent]) this.image(kit)
    this.versions.share([
      this.environment,
      this.agent,
      ...(this.user ? [this.user, this.user.class] : []),
      this.agent.class,
    ])
    this.start = this.versions.root
  }

  #class(module: string, name: string): ProgramClass {
    const found = this.program.load(`tau2.domains.${this.#layout.folder}.${module}`).scope.get(name)
    if (found instanceof ProgramClass) return found
    throw new Error(`The checkout has no class ${name} in ${this.#layout.folder}/${module}.py.`)
  }

  #openAgent(read: (path: string) => string): Instance {
    const { folder, database, model, tools } = this.#layout
    const loaded = validateModel(
      this.#class('data_model', model),
      readDataFile(read, domainPath(folder, database)),
    )
    if (this.knowledge)
      return makeKnowledgeKit(this.program, {
        database: loaded,
        retrieval: this.retrieval,
        knowledge: this.knowledge,
      })
    return call(this.#class('tools', tools), [loaded]) as Instance
  }

  #makeUser(read: (path: string) => string): Instance | null {
    const { folder, user } = this.#layout
    if (user === undefined) return null
    const shared = this.agent.fields.get('db') as Instance
    const database =
      user.database && user.model
        ? validateModel(
            this.#class('user_data_model', user.model),
            readDataFile(read, domainPath(folder, user.database)),
          )
        : shared
    return call(this.#class(user.module, user.tools), [database]) as Instance
  }

  #openEnvironment(): Instance {
    const name = this.#layout.environment
    const of = name
      ? this.#class('environment', name)
      : (this.program.load('tau2.environment.environment').scope.get('Environment') as ProgramClass)
    return call(of, [this.name, '', this.agent, this.user]) as Instance
  }

  /** Runs something with a source of random texts. */
  drawing<T>(draw: () => string, action: () => T): T {
    const before = this.#draw
    this.#draw = draw
    try {
      return action()
    } finally {
      this.#draw = before
    }
  }

  /** Whether a replay runs the tool again; tools that nobody has are skipped. */
  isMutating(name: string): boolean {
    for (const kit of [this.agent, this.user]) {
      const tool = kit && toolsOf(kit.class).get(name)
      if (tool) return tool.mutates
    }
    return false
  }

  /** The database of a side as it was loaded. */
  image(kit: Instance): DatabaseImage {
    const database = kit.fields.get('db') as Instance
    let image = this.#images.get(database)
    if (image === undefined) {
      image = new DatabaseImage(database)
      this.#images.set(database, image)
    }
    return image
  }

  /** The original's hash of a side's database in a state, which must be in force. */
  hash(kit: Instance, version: Version): string {
    return this.image(kit).hash(kit.fields.get('db') as Instance, this.versions.changedIn(version))
  }

  /** How a side's database in a state differs from the one loaded; the state must be in force. */
  differences(kit: Instance, version: Version): ReadonlyMap<string, string | null> {
    return this.image(kit).differences(
      kit.fields.get('db') as Instance,
      this.versions.changedIn(version),
    )
  }

  /** The state that a task begins with, worked out once. */
  startOf(task: Tau2Task): Version {
    let start = this.#starts.get(task)
    if (start === undefined) {
      const world = new Tau2World(this)
      world.logReads(loggedReads(task))
      if (task.initialState) world.initialize(task.initialState)
      start = world.freeze()
      this.#starts.set(task, start)
    }
    return start
  }

  /** The text that tells the agent its rules. */
  policy({
    task,
    solo = false,
  }: {
    readonly task?: Tau2Task
    readonly solo?: boolean
  } = {}): string {
    if (solo && !this.syncs) throw new Error(`The ${this.name} domain does not support solo mode.`)
    if (this.syncs)
      return telecomPolicy(this.checkout, { isWorkflow: this.name === 'telecom-workflow', solo })
    if (this.knowledge)
      return bankingPolicy(this.checkout, {
        retrieval: this.retrieval,
        knowledge: this.knowledge,
        ...(task && { task }),
      })
    return this.checkout.data(domainPath(this.#layout.folder, 'policy.md'))
  }

  /** All tasks, in the order of their file. */
  get tasks(): readonly Tau2Task[] {
    this.#tasks ??= this.knowledge ? this.#bankingTasks() : readTasks(this.tasksText())
    return this.#tasks
  }

  #bankingTasks(): readonly Tau2Task[] {
    const folder = domainPath('banking_knowledge', 'tasks')
    const files = this.checkout.list(folder).filter(name => /^task_.*\.json$/.test(name))
    return files.map(name =>
      readTask(parseJson(this.checkout.data(`${folder}/${name}`)) as Value, name),
    )
  }

  /** The file of tasks; that of telecom is made again if a trimmed checkout lacks it. */
  tasksText(): string {
    const path = domainPath(this.#layout.folder, 'tasks.json')
    if (this.checkout.has(path) || !this.syncs) return this.checkout.data(path)
    // The generators play with an environment of their own, and must leave nothing behind in ours.
    const scratch = this.versions.branch(this.start)
    return this.versions.within(scratch, () =>
      rebuildTelecomTasks(this.program, this.splits.full ?? []),
    )
  }

  /** The ids of the tasks of each split; banking has none. */
  get splits(): Readonly<Record<string, readonly string[]>> {
    const path = domainPath(this.#layout.folder, 'split_tasks.json')
    if (this.knowledge || !this.checkout.has(path)) return {}
    return JSON.parse(this.checkout.data(path)) as Record<string, readonly string[]>
  }
}

/** Read-only tools that a task asks to be used; their use is recorded in the database so that it can be checked. */
function loggedReads({ criteria }: Tau2Task): readonly string[] {
  const calls = (criteria?.actions ?? []).filter(
    ({ name }) => name === 'call_discoverable_agent_tool',
  )
  const names = calls.map(call => call.arguments.get('agent_tool_name'))
  return [...new Set(names.filter(name => typeof name === 'string'))]
}

const drawDigits = (count: number): string =>
  createHash('sha256').update(`drawn ${count}`).digest('hex').slice(0, 32)
