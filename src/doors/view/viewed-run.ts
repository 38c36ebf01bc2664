import { join } from 'node:path'
import { type Json, treeOf } from '../../base/core/ids.ts'
import { cutAt } from '../../run/store/cut-journal.ts'
import {
  type RunManifest,
  type RunStanding,
  runPaths,
  standingOf,
} from '../../run/store/run-folder.ts'
import { curvesOf, type Metrics, type Pace } from './answer/curves.ts'
import { partingOf } from './answer/parting.ts'
import { reportedSuccess, resultOf, verdictAnswer } from './answer/result.ts'
import { shownImages } from './answer/shown-images.ts'
import { sumsOf } from './answer/sums.ts'
import { type TokenQuery, tokenPage } from './answer/token-answer.ts'
import { creditsOf, trajectoryAnswer } from './answer/trajectory-answer.ts'
import { treeAnswer } from './answer/tree-answer.ts'
import { makeWarnings } from './answer/warnings.ts'
import { makeCrew } from './answer/workers.ts'
import type {
  Curves,
  Facets,
  GroupAnswer,
  GroupPage,
  Progress,
  RunAnswer,
  RunEntry,
  RunSums,
} from './answers.ts'
import type { TreeFacts } from './index/facts.ts'
import { RunIndex } from './index/run-index.ts'
import { TextSearch } from './index/search-text.ts'
import {
  dataOf,
  type LoadedGroup,
  type LoadedMember,
  loadGroup,
  memberRow,
} from './index/stored-group.ts'
import { Tail } from './index/tail.ts'
import { facetsOf, type GroupQuery, queryGroups } from './query.ts'
import { policiesOf, readReport, readWholeManifest, shownFolder, wordsOf } from './run-files.ts'
import { findRunModel, type RunModel } from './run-model.ts'
import type { PartingAnswer, TokenPage, TrajectoryAnswer, TreeAnswer } from './trajectory-shapes.ts'

/** Thrown if there is nothing of that name. */
export class NotFoundError extends Error {
  override name = 'NotFoundError'
  readonly statusCode = 404
}

/** How a run is opened for viewing. */
export interface ViewedRunOptions {
  readonly name: string
  readonly folder: string
  /** What the run came from, in words. */
  readonly origin: string
  /** A model folder to write tokens as text with, instead of the run's own. */
  readonly model?: string
}

/** One run as the page asks about it. Its files may still grow. */
export class ViewedRun implements AsyncDisposable {
  readonly name: string
  readonly folder: string
  readonly #options: ViewedRunOptions
  readonly #index: RunIndex
  readonly #search: TextSearch
  readonly #metricsTail: Tail
  readonly #eventsTail: Tail
  readonly #metrics = new Map<number, Metrics>()
  readonly #warnings = makeWarnings()
  readonly #crew = makeCrew()
  readonly #pace = new Map<number, number>()
  readonly #closing = new AbortController()
  #begun: number | undefined
  #manifest: RunManifest
  #standing: RunStanding
  #report: Json = null
  #model: Promise<RunModel> | undefined
  #looking: Promise<void> | undefined
  #refreshing: Promise<void> | undefined
  /** The group that was read last: whoever looks at one asks for several pages of it. */
  #last: LoadedGroup | undefined
  #pages: { key: string; rows: ReturnType<typeof queryGroups> } | undefined

  constructor(options: ViewedRunOptions, manifest: RunManifest) {
    this.name = options.name
    this.folder = options.folder
    this.#options = options
    this.#manifest = manifest
    this.#standing = manifest.status
    const paths = runPaths(options.folder)
    this.#index = new RunIndex(paths.journal)
    this.#search = new TextSearch(this.#index)
    this.#metricsTail = new Tail(join(options.folder, 'metrics.jsonl'))
    this.#eventsTail = new Tail(paths.events)
  }

  /** Opens a run folder and learns what lies where in its journal. */
  static async open(options: ViewedRunOptions): Promise<ViewedRun> {
    const run = new ViewedRun(options, await readWholeManifest(options.folder))
    await run.refresh()
    return run
  }

  get entry(): RunEntry {
    const { kind, started, config } = this.#manifest
    const { origin } = this.#options
    const result = resultOf(this.#report)
    return {
      ...{ name: this.name, kind, status: this.#standing, started, origin },
      ...(config.environment !== undefined && { environment: wordsOf(config.environment) }),
      ...(config.policy !== undefined && { policy: wordsOf(config.policy) }),
      ...(result && { result }),
    }
  }

  /** Rises whenever something was added. */
  get version(): number {
    return (
      this.#index.progress.version + this.#metrics.size + this.#warnings.count + this.#crew.reports
    )
  }

  /** Reads what was added to the run's files; trees are looked into in the background. */
  refresh(): Promise<void> {
    // Several pages may ask at once: every line is read once.
    this.#refreshing ??= this.#readOn().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #readOn(): Promise<void> {
    this.#manifest = await readWholeManifest(this.folder).catch(() => this.#manifest)
    this.#standing = await standingOf(this.folder, this.#manifest).catch(() => this.#standing)
    this.#report = this.#standing === 'running' ? null : await readReport(this.folder)
    await this.#index.refresh()
    for await (const line of this.#metricsTail.lines()) this.#addMetrics(line)
    for await (const line of this.#eventsTail.lines()) this.#addEvent(line)
    this.#looking ??= this.#lookOn().finally(() => {
      this.#looking = undefined
    })
  }

  /** Waits until everything that is there was looked into. */
  async looked(): Promise<void> {
    await this.#looking
  }

  async answer(canTry: boolean): Promise<RunAnswer> {
    const { config, versions, finished, reason, directory } = this.#manifest
    const { model } = await this.#openModel()
    const report = this.#report
    const verdict = verdictAnswer(report)
    return {
      ...this.entry,
      folder: shownFolder(this.folder),
      progress: this.#progress(),
      ...(finished !== undefined && { finished }),
      ...(reason !== undefined && { reason }),
      config,
      versions,
      successAt: this.successAt,
      warnings: this.#warnings.all(report),
      ...(verdict && { verdict }),
      workers: this.#crew.rows(report),
      report,
      sums: this.#sums(),
      model,
      policies: policiesOf(this.folder, this.#manifest),
      canTry: canTry && config.environment !== undefined && directory !== undefined,
    }
  }

  /** A finished run whose journal was cut is shown as far as it goes, and said to be damaged. */
  #progress(): Progress {
    const { progress, end } = this.#index
    const cut = cutAt(this.folder, this.#manifest, end)
    return cut ? { damage: cut.message, ...progress } : progress
  }

  #sums(): RunSums {
    const sums = sumsOf(this.rows(), {
      treesOf: this.#treesOf,
      unscoredOf: group => this.#index.group(group)?.unscored ?? [],
      successAt: this.successAt,
    })
    return { ...sums, success: reportedSuccess(this.#report) ?? sums.success }
  }

  get successAt(): number {
    const { successAt } = this.#manifest.config
    return typeof successAt === 'number' ? successAt : 1
  }

  rows(): ReturnType<RunIndex['rows']> {
    return this.#index.rows()
  }

  curves(): Curves {
    return curvesOf({
      rows: this.rows(),
      treesOf: this.#treesOf,
      metrics: [...this.#metrics.values()].sort((a, b) => a.step - b.step),
      pace: [...this.#pace]
        .map(([second, tokens]) => ({ second, tokens }) satisfies Pace)
        .sort((a, b) => a.second - b.second),
      successAt: this.successAt,
    })
  }

  facets(): Facets {
    return facetsOf(this.rows())
  }

  async groups(
    query: GroupQuery,
    { offset, limit }: { offset: number; limit: number },
  ): Promise<GroupPage> {
    const hits = query.text === undefined ? undefined : await this.#search.find(query.text)
    const all = this.rows()
    const key = JSON.stringify([
      query,
      this.#index.progress.version,
      hits?.looked,
      hits?.groups.size,
    ])
    if (this.#pages?.key !== key) this.#pages = { key, rows: queryGroups(all, query, hits?.groups) }
    const { rows } = this.#pages
    const { trees } = this.#index.progress
    return {
      total: rows.length,
      all: all.length,
      offset,
      rows: rows.slice(offset, offset + limit),
      ...(hits && { searched: { looked: hits.looked, trees } }),
    }
  }

  async group(id: string): Promise<GroupAnswer> {
    const group = await this.#load(id)
    const rows = this.rows()
    const at = rows.findIndex(row => row.id === id)
    return {
      row: rows[at]!,
      data: dataOf(group.record),
      members: group.members.map(memberRow),
      previous: rows[at - 1]?.id ?? null,
      next: rows[at + 1]?.id ?? null,
    }
  }

  async trajectory(id: string): Promise<TrajectoryAnswer> {
    const { group, member } = await this.#find(id)
    const images = await shownImages(this.folder, member.trajectory.messages)
    return { ...trajectoryAnswer(group, member, this.#manifest.config.weighting), images }
  }

  async tokens(id: string, query: TokenQuery): Promise<TokenPage> {
    const { group, member } = await this.#find(id)
    const { tree, trajectory } = member
    const { texts } = await this.#openModel()
    const credits = creditsOf(tree, group, this.#manifest.config.weighting)
    return tokenPage(tree, trajectory, { query, credits, texts })
  }

  async tree(id: string): Promise<TreeAnswer> {
    const group = await this.#load(this.#index.groupOfTree(id) ?? id)
    const tree = group.members.find(member => member.tree.id === id)?.tree
    if (!tree) throw new NotFoundError(`no tree "${id}" in this run`)
    const { texts } = await this.#openModel()
    const { config } = this.#manifest
    const branch =
      typeof config.branch === 'string' ? config.branch : String(config.strategy ?? 'a fork')
    return treeAnswer(tree, group, {
      texts,
      branch,
      credits: creditsOf(tree, group, config.weighting),
    })
  }

  async parting(a: string, b: string): Promise<PartingAnswer> {
    const whole = { path: Number.POSITIVE_INFINITY, offset: 0, limit: Number.POSITIVE_INFINITY }
    const [left, right] = [await this.tokens(a, whole), await this.tokens(b, whole)]
    return partingOf({ id: a, page: left }, { id: b, page: right })
  }

  /** The stored trajectory itself, as raw JSON. */
  async raw(id: string): Promise<object> {
    const { member, group } = await this.#find(id)
    const { scored, outcome, trajectory, tree } = member
    const { nodes, trajectories: _, ...header } = tree
    return {
      task: group.record.task,
      outcome,
      ...(scored ?? {}),
      trajectory,
      tree: { ...header, nodes: nodes.length },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#looking
    await this.#index[Symbol.asyncDispose]()
  }

  readonly #treesOf = (group: string): readonly TreeFacts[] => {
    const record = this.#index.group(group)
    if (!record) return []
    const trees = new Set(
      [...record.members, ...record.unscored].map(({ trajectory }) => treeOf(trajectory)),
    )
    return [...trees].flatMap(tree => this.#index.facts(tree) ?? [])
  }

  async #lookOn(): Promise<void> {
    const { signal } = this.#closing
    while (!signal.aborted && (await this.#index.look(signal)));
  }

  #openModel(): Promise<RunModel> {
    this.#model ??= findRunModel(this.#manifest, this.#options.model)
    return this.#model
  }

  async #load(id: string): Promise<LoadedGroup> {
    const record = this.#index.group(id)
    if (!record) throw new NotFoundError(`no group "${id}" in this run`)
    if (this.#last?.record === record) return this.#last
    const group = await loadGroup(this.#index, record)
    this.#last = group
    return group
  }

  async #find(id: string): Promise<{ group: LoadedGroup; member: LoadedMember }> {
    const groupId = this.#index.groupOfTree(treeOf(id))
    const group = groupId === undefined ? undefined : await this.#load(groupId)
    const member = group?.members.find(({ trajectory }) => trajectory.id === id)
    if (group && member) return { group, member }
    throw new NotFoundError(`no trajectory "${id}" in this run`)
  }

  #addMetrics(line: string): void {
    const metrics = parseLine(line)
    if (typeof metrics?.step === 'number') this.#metrics.set(metrics.step, metrics as Metrics)
  }

  #addEvent(line: string): void {
    if (!/"(?:tree-end|warning|workers|server-back)"/.test(line)) return
    const event = parseLine(line)
    if (!event || typeof event.time !== 'string') return
    const second = Math.floor(Date.parse(event.time) / 1000)
    if (event.kind === 'tree-end' && typeof event.sampled === 'number') {
      this.#begun ??= second
      const at = second - this.#begun
      this.#pace.set(at, (this.#pace.get(at) ?? 0) + event.sampled)
    } else if (event.kind === 'workers') this.#crew.hear(event)
    else this.#warnings.hear(event)
  }
}

/** One line of JSON; an incomplete line is ignored. */
function parseLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}
