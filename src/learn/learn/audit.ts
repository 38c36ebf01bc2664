import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SettingError } from '../../base/core/names/setting-error.ts'
import type { Policy } from '../../base/core/policy.ts'
import type { Row } from '../../base/core/row.ts'
import type { VersionRange } from '../../base/core/segment.ts'
import { groupRows } from '../../run/rows/row-record.ts'
import { readManifest, runPaths } from '../../run/store/run-folder.ts'
import { openRunReader } from '../../run/store/store.ts'

/** What an audit found. */
export interface Audit {
  readonly rows: number
  /** Trained tokens, and those whose log-probability was computed again. */
  readonly tokens: number
  readonly checked: number
  /** Tokens that could not be checked, by reason. */
  readonly unchecked: Readonly<Record<string, number>>
  /** Tokens further off than the tolerance. */
  readonly wrong: number
  readonly tolerance: number
  readonly largest: number
  readonly mean: number
  /** The worst tokens, worst first. */
  readonly worst: readonly WrongToken[]
}

/** A token whose recorded log-probability is not the policy's. */
export interface WrongToken {
  readonly trajectory: string
  readonly row: number
  readonly token: number
  readonly recorded: number
  readonly recomputed: number
}

/** How an audit is made. */
export interface AuditOptions {
  /** How far a log-probability may be off. @default 1e-4 embedded, 0.05 elsewhere */
  readonly tolerance?: number
  readonly signal?: AbortSignal
  readonly onRow?: (audit: { readonly rows: number }) => void
}

/** A row with the temperature its tree was sampled at. */
export interface AuditedRow {
  readonly row: Row
  readonly temperature: number
}

/** Computes log-probabilities of a row again, under weights of one version. */
export interface Scorer {
  /** The version of its weights; it checks tokens of no other. */
  readonly version: number
  /** Undefined if it cannot compute log-probabilities at that temperature. */
  score(row: Row, from: number, temperature: number): Promise<Float32Array | undefined>
}

/** Recomputes the log-probability of every trained token of a run and compares. */
export async function auditRun(
  run: string,
  policy: Policy,
  options: AuditOptions = {},
): Promise<Audit> {
  const { signal = new AbortController().signal, onRow } = options
  if (!policy.score)
    throw new SettingError(`${policy.name} cannot score given tokens, so nothing can be audited`)
  const { kind } = await readManifest(run)
  if (kind === 'convert') {
    throw new SettingError(
      `${run} was converted: its tokens were sampled behind other prompts, and its report says how far off they are`,
    )
  }
  const tolerance = options.tolerance ?? policy.inside?.tolerance ?? 0.05
  const tally = makeTally(tolerance)
  await eachScorer(run, policy, {
    signal,
    async use(scorer, isFirst) {
      await using reader = await openRunReader(run)
      for await (const { group } of reader.groups()) {
        for (const { row, tree } of groupRows(group, { include: allRows })) {
          signal.throwIfAborted()
          if (isFirst) tally.count(row)
          await tally.check({ row, temperature: tree.sampling.temperature }, scorer)
          if (isFirst) onRow?.({ rows: tally.rows })
        }
      }
    },
  })
  return tally.end()
}

/** Filtered trajectories were sampled like all others, so they are audited too. */
const allRows = { failed: false, filtered: true } as const

/** Recomputes the log-probabilities of rows that are at hand. */
export async function auditRows(
  rows: readonly AuditedRow[],
  scorers: readonly Scorer[],
  { tolerance }: { readonly tolerance: number },
): Promise<Audit> {
  const tally = makeTally(tolerance)
  for (const audited of rows) {
    tally.count(audited.row)
    for (const scorer of scorers) await tally.check(audited, scorer)
  }
  return tally.end()
}

interface Using {
  readonly signal: AbortSignal
  use(scorer: Scorer, isFirst: boolean): Promise<void>
}

/** Calls `use` with every available set of weights: the policy's own, and the run's checkpoints if it can load them. */
async function eachScorer(run: string, policy: Policy, { signal, use }: Using): Promise<void> {
  const scorerAt = (version: number): Scorer => ({
    version,
    async score(row, from, temperature) {
      const end = row.mask.lastIndexOf(1) + 1
      const ids = row.ids.subarray(0, end)
      const scores = await policy.score!(ids, from, { temperature }, { signal })
      // Some servers score at temperature 1 only; their numbers cannot be compared at another.
      return temperature === 1 || scores.basis === 'tempered' ? scores.logprobs : undefined
    },
  })
  if (!policy.inside) {
    const probe = await policy.score!(Int32Array.of(0, 0), 1, { temperature: 1 }, { signal })
    await use(scorerAt(probe.version.to), true)
    return
  }
  const { model: folder } = (await policy.describe?.({ signal })) ?? {}
  const own = folder === undefined ? 0 : ((await versionIn(folder)) ?? 0)
  await use(scorerAt(own), true)
  for (const [version, path] of await checkpointsOf(run)) {
    if (version === own) continue
    await policy.inside.load(path)
    await use(scorerAt(version), false)
  }
}

async function checkpointsOf(run: string): Promise<ReadonlyMap<number, string>> {
  const { checkpoints } = runPaths(run)
  const found = new Map<number, string>()
  const names = existsSync(checkpoints) ? await readdir(checkpoints) : []
  for (const name of names.sort()) {
    const version = await versionIn(join(checkpoints, name))
    if (version !== undefined) found.set(version, join(checkpoints, name))
  }
  return found
}

async function versionIn(folder: string): Promise<number | undefined> {
  const path = join(folder, 'trainer.json')
  if (!existsSync(path)) return undefined
  const { version } = JSON.parse(await readFile(path, 'utf8')) as { version?: unknown }
  return typeof version === 'number' ? version : undefined
}

/** How many of the worst tokens are kept. */
const kept = 10

const noVersion = 'no weights of their version at hand'

function makeTally(tolerance: number) {
  const sums = { rows: 0, tokens: 0, checked: 0, wrong: 0, total: 0, largest: 0 }
  const unchecked = new Map<string, number>()
  const worst: WrongToken[] = []
  const leave = (reason: string, count: number): void => {
    if (count > 0) unchecked.set(reason, (unchecked.get(reason) ?? 0) + count)
  }
  const compare = (row: Row, token: number, recomputed: number): void => {
    const recorded = row.logprobs[token]!
    const difference = Math.abs(recorded - recomputed)
    sums.checked++
    sums.total += difference
    // A NaN is never within the tolerance.
    if (difference <= sums.largest) return
    sums.largest = Math.max(sums.largest, difference)
  }
  const note = (row: Row, token: number, recomputed: number): void => {
    const recorded = row.logprobs[token]!
    if (Math.abs(recorded - recomputed) <= tolerance) return
    sums.wrong++
    worst.push({ trajectory: row.trajectory.id, row: row.index, token, recorded, recomputed })
    worst.sort((a, b) => distance(b) - distance(a))
    worst.length = Math.min(kept, worst.length)
  }
  return {
    get rows() {
      return sums.rows
    },
    count(row: Row): void {
      sums.rows++
      const trained = trainedTokens(row)
      sums.tokens += trained.length
      leave('no log-probability recorded', trained.filter(token => !hasNumber(row, token)).length)
      if (row.basis === 'renormalised') {
        leave('renormalised after top-p or top-k', trained.length)
      }
    },
    async check({ row, temperature }: AuditedRow, scorer: Scorer): Promise<void> {
      if (row.basis === 'renormalised') return
      const tokens = trainedTokens(row).filter(
        token => hasNumber(row, token) && isOf(versionAt(row, token), scorer.version),
      )
      const from = tokens[0]
      if (from === undefined) return
      const logprobs = await scorer.score(row, from, row.basis === 'raw' ? 1 : temperature)
      if (!logprobs) return leave('scored at temperature 1 only', tokens.length)
      for (const token of tokens) {
        compare(row, token, logprobs[token - from]!)
        note(row, token, logprobs[token - from]!)
      }
    },
    end(): Audit {
      const { rows, tokens, checked, wrong, largest, total } = sums
      const known = [...unchecked.values()].reduce((sum, count) => sum + count, 0)
      leave(noVersion, tokens - known - checked)
      const mean = checked === 0 ? 0 : total / checked
      const reasons = Object.fromEntries(unchecked)
      return { rows, tokens, checked, unchecked: reasons, wrong, tolerance, largest, mean, worst }
    },
  }
}

function distance({ recorded, recomputed }: WrongToken): number {
  return Math.abs(recorded - recomputed)
}

function trainedTokens({ mask }: Row): readonly number[] {
  const tokens: number[] = []
  mask.forEach((trained, token) => {
    if (trained === 1) tokens.push(token)
  })
  return tokens
}

function hasNumber(row: Row, token: number): boolean {
  return !Number.isNaN(row.logprobs[token])
}

/** The version that sampled a token; undefined, which matches any, for a trained token that was not sampled. */
function versionAt({ versions }: Row, token: number): VersionRange | undefined {
  return versions.find(({ start, end }) => token >= start && token < end)?.value
}

function isOf(range: VersionRange | undefined, version: number): boolean {
  return range === undefined || (range.from <= version && version <= range.to)
}
