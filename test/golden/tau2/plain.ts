import { parseJson } from '@espalier/text/python'
import { canonicalText } from '../../../src/worlds/tau2/database.ts'
import { checkCommunicated, matchesAction } from '../../../src/worlds/tau2/evaluate.ts'
import { computeMetrics, type MeasuredRun, passHatK } from '../../../src/worlds/tau2/metrics.ts'
import { builtinNames, classes } from '../../../src/worlds/tau2/program/builtins.ts'
import { call } from '../../../src/worlds/tau2/program/call.ts'
import { indent } from '../../../src/worlds/tau2/program/lines.ts'
import { PythonError, type Value } from '../../../src/worlds/tau2/program/values.ts'
import { toJsonText } from '../../../src/worlds/tau2/world.ts'
import { argumentsOf, differ, firstOf, type Problem, sha256, type Tau2Row } from './source.ts'

export function checkValue(row: Tau2Row): Problem {
  switch (row.k) {
    case 'to_json_str': {
      const [value] = parseJson(row.json) as [Value]
      const hash = sha256(canonicalText(new Map([['v', value]])))
      return firstOf(
        differ(`to_json_str ${row.json}`, row.out, toJsonText(value)),
        differ(`hash ${row.json}`, row.hash, hash),
      )
    }
    case 'compare': {
      const action = {
        name: 'n',
        arguments: argumentsOf(row.action),
        compare_args: row.compare_args,
      }
      return differ(
        'compare',
        row.out,
        matchesAction(action, { name: row.call_name, arguments: argumentsOf(row.call) }),
      )
    }
    case 'communicate': {
      const message = { role: 'assistant', content: row.text, tool_calls: null } as const
      const { met, justification } = checkCommunicated(row.info, [message])
      return firstOf(
        differ('met', row.met, met),
        differ('justification', row.justification, justification),
      )
    }
    case 'indent':
      return differ('indent', row.out, indent(row.in, '\t'))
    case 'calc':
      return differ(`calc ${row.e}`, [row.out, row.error], calculated(row.e))
    default:
      return `skipped: unknown kind ${row.k}`
  }
}

/** What the tool `calculate` answers, and whether that is an error. */
function calculated(expression: string): readonly [string, boolean] {
  const run = (name: string, ...given: readonly Value[]): Value =>
    call((classes[name] ?? builtinNames.get(name)) as Value, given)
  try {
    if (![...expression].every(one => '0123456789+-*/(). '.includes(one))) {
      throw new PythonError('ValueError', 'Invalid characters in expression')
    }
    return [run('str', run('round', run('float', run('eval', expression)), 2)) as string, false]
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    return [`Error: ${error.message}`, true]
  }
}

export function checkMetrics(row: Tau2Row): Problem {
  if (row.pass_hat_k) return checkPassHatK(row)
  const runs = row.sims.map(
    ([task, trial, reward, termination, agentCost, match, checks]: Tau2Row): MeasuredRun => ({
      task,
      trial,
      reward,
      termination,
      agentCost,
      rewardInfo: {
        db_check: match === null ? null : { db_match: match, db_reward: match ? 1 : 0 },
        action_checks: checks.map(([action_match, tool_type]: Tau2Row) => ({
          action_match,
          tool_type,
        })),
      },
    }),
  )
  const { avg_reward, avg_agent_cost, pass_hat_ks, ...counts } = computeMetrics(runs, {
    trials: row.num_trials,
  })
  const { out } = row
  return firstOf(
    near('avg_reward', out.avg_reward, avg_reward),
    near('avg_agent_cost', out.avg_agent_cost, avg_agent_cost),
    differ('ks', Object.keys(out.pass_hat_ks), Object.keys(pass_hat_ks)),
    ...Object.keys(out.pass_hat_ks).map(k =>
      near(`pass^${k}`, out.pass_hat_ks[k], pass_hat_ks[Number(k)]),
    ),
    ...Object.entries(counts).map(([name, value]) => differ(name, out[name], value)),
  )
}

function checkPassHatK(row: Tau2Row): Problem {
  const [n, c, k] = row.pass_hat_k
  try {
    return near('pass^k', row.out, passHatK(n, c, k))
  } catch (error) {
    if (!(error instanceof PythonError)) throw error
    return String(JSON.stringify(row)).includes(error.message)
      ? undefined
      : `raised ${error.message}, wanted ${JSON.stringify(row)}`
  }
}

function near(what: string, wanted: unknown, got: number | undefined): Problem {
  const isNothing = wanted === null || wanted === 'NaN' || Number.isNaN(wanted)
  if (isNothing && Number.isNaN(got)) return undefined
  if (typeof wanted === 'number' && got !== undefined && Math.abs(wanted - got) <= 1e-12)
    return undefined
  return `${what}: wanted ${String(wanted)}, got ${String(got)}`
}
