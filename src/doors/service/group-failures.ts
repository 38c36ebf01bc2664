import { generalised } from '../../base/core/failure.ts'
import type { Group, Unscored } from '../../base/core/group.ts'
import { withoutLikelySecrets } from '../../base/core/process/secrets.ts'
import type { FinishedGroup } from './rollouts-api.ts'

/** Different reasons that a group tells; the most frequent ones, if it has more. */
const most = 8

/** Why attempts of a group have no reward, counted as reports count it: by boundary, without numbers. */
export function failuresOf({ unscored }: Pick<Group, 'unscored'>): FinishedGroup['failures'] {
  const failures = new Map<string, FinishedGroup['failures'][number]>()
  for (const each of unscored) {
    const { where, message } = reasonOf(each)
    const key = `${where}: ${message}`
    const { count } = failures.get(key) ?? { count: 0 }
    failures.set(key, { where, message, count: count + 1 })
  }
  return [...failures.values()].sort((a, b) => b.count - a.count).slice(0, most)
}

/** Different reasons that are told in the life of a service. */
const mostTold = 100

/** Tells the operator why attempts fail: each reason when it is first seen. */
export function makeFailureTelling(
  tell: (line: string) => void,
): (group: Pick<FinishedGroup, 'group' | 'failures'>) => void {
  const told = new Set<string>()
  return ({ group, failures }) => {
    for (const { where, message } of failures) {
      const reason = `${where}: ${message}`
      if (told.has(reason) || told.size >= mostTold) continue
      told.add(reason)
      tell(`an attempt of ${group} ${reason} (told once)`)
    }
  }
}

function reasonOf({ outcome }: Pick<Unscored, 'outcome'>) {
  return outcome.kind === 'failed'
    ? { where: `failed in ${outcome.boundary}`, message: withoutDetails(outcome.message) }
    : { where: 'aborted', message: withoutDetails(outcome.by) }
}

function withoutDetails(message: string): string {
  return generalised(withoutLikelySecrets(message))
}
