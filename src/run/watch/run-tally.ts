import { readFileSync } from 'node:fs'
import { type Group, isHeldOut, isOfAnother } from '../../base/core/group.ts'
import { type RunManifest, runPaths } from '../store/run-folder.ts'
import type { Listen } from './events.ts'
import { makeReport, type Report, type ReportBuilder } from './report.ts'

/** Held-out tasks as they went after a step of training; 0 is before the first. */
export interface MeasuredStep extends Pick<Report, 'success' | 'reward' | 'trajectories'> {
  readonly step: number
}

/** Groups of a run added up, those of held-out tasks apart. */
export interface GroupsTally {
  add(group: Group): void
  report(): Report & { readonly evaluations?: readonly MeasuredStep[] }
}

/** Opens a tally of groups. @default successAt 1 */
export function makeGroupsTally(successAt = 1): GroupsTally {
  const open = (): ReportBuilder => makeReport({ successAt })
  const learned = open()
  const heldOut = new Map<number, ReportBuilder>()
  const builderOf = (group: Group): ReportBuilder => {
    if (!isHeldOut(group)) return learned
    const known = heldOut.get(group.step!) ?? open()
    heldOut.set(group.step!, known)
    return known
  }
  return {
    add(group) {
      if (!isOfAnother(group)) builderOf(group).add(group)
    },
    report: () => ({
      ...learned.report(),
      ...(heldOut.size > 0 && { evaluations: measuredSteps(heldOut) }),
    }),
  }
}

function measuredSteps(heldOut: ReadonlyMap<number, ReportBuilder>): readonly MeasuredStep[] {
  return [...heldOut]
    .sort(([one], [other]) => one - other)
    .map(([step, builder]) => {
      const { success, reward, trajectories } = builder.report()
      return { step, success, reward, trajectories }
    })
}

/** The reward from which on an attempt of a run counts as a success. */
export function successAtIn({ successAt }: RunManifest['config']): number {
  return typeof successAt === 'number' ? successAt : 1
}

/** Adds a run up while it goes on. */
export interface RunTally {
  readonly listen: Listen
  /** Undefined if it has not seen the whole run: then the journal must be read. */
  whole(): GroupsTally | undefined
}

/** Opens the tally of a run that is about to begin, or to go on. */
export function makeRunTally(run: string): RunTally {
  let tally: GroupsTally | undefined
  const add: Listen = event => {
    if (event.kind === 'run-start') {
      // Groups finished before a resume cause no events.
      tally = event.finished === 0 ? makeGroupsTally(successAtOf(run)) : undefined
      // Groups of seats with other players are stored without an event.
    } else if (event.kind === 'tree-end' && event.isOther) tally = undefined
    else if (event.kind === 'group-end') tally?.add(event.group)
  }
  return {
    listen(event) {
      try {
        add(event)
      } catch {
        tally = undefined
      }
    },
    whole: () => tally,
  }
}

/** The manifest exists before the run's first event. */
function successAtOf(run: string): number {
  const text = readFileSync(runPaths(run).manifest, 'utf8')
  return successAtIn((JSON.parse(text) as RunManifest).config)
}
