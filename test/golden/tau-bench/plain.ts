import type { PythonValue } from '@espalier/text/python'
import { dumps, parseJson, str } from '@espalier/text/python'
import { canonical } from '../../../src/worlds/tau/canonical.ts'
import { formatMetrics, measure } from '../../../src/worlds/tau/metrics.ts'
import { roundToCents } from '../../../src/worlds/tau/operations.ts'
import { calculate } from '../../../src/worlds/tau/shared-tools.ts'
import { differ, firstOf, type Problem, sha256, type TauRow } from './source.ts'

export function checkValue(row: TauRow): Problem {
  if (row.k === 'round2') return differ(row.x, row.out, dumps(roundToCents(parseJson(row.x))))
  if (row.k !== 'value') return `skipped: unknown kind ${row.k}`
  const value = parseJson(row.json)
  const [element] = value as PythonValue[]
  const hashed = canonical(value)
  return firstOf(
    differ('dumps', row.dumps, dumps(value)),
    differ('hash_input', row.hash_input, hashed),
    differ('hash', row.hash, sha256(hashed)),
    row.fstr === null ? undefined : differ('fstr', row.fstr, str(element as PythonValue)),
  )
}

export function checkCalculation(row: TauRow): Problem {
  return differ(row.e, row.out, calculate(row.e))
}

export function checkMetrics(row: TauRow): Problem {
  const attempts = (row.rows as [number, number, number][]).map(([taskId, trial, reward]) => ({
    taskId,
    trial,
    reward,
  }))
  return differ('stdout', row.stdout, formatMetrics(measure(attempts)))
}
