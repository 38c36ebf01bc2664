import { expect, it } from 'vitest'
import { plainTree } from '../../../test/plain-tree.ts'
import { type Listen, listenAll, type RunEvent, type Together, tellTogether } from './events.ts'

const tree = plainTree({})
const ended: Together = {
  kind: 'trees-end',
  count: 1,
  sampled: 3,
  outcomes: [['completed', 1]],
  scoringSeconds: 2,
  lines: '{}\n',
  trees: [{ kind: 'tree-end', tree }],
  scores: [{ kind: 'score-end', tree: tree.id, seconds: 2 }],
}

it('tells what happened together to those who count, and event by event to all others', () => {
  const single: RunEvent['kind'][] = []
  const joined: (string | Together['kind'])[] = []
  const one: Listen = ({ kind }) => void single.push(kind)
  const count = ({ kind }: RunEvent): void => void joined.push(`one ${kind}`)
  const counting = Object.assign(count, {
    together: ({ kind }: Together) => void joined.push(kind),
  })
  const failing: Listen = () => {
    throw new Error('no listener breaks a run')
  }
  const all = listenAll(failing, one, undefined, counting)
  tellTogether(all, { kind: 'attempts-start', task: 'a', members: 2 })
  tellTogether(all, ended)
  all({ kind: 'run-end', status: 'finished' })
  tellTogether(undefined, ended)
  const attempts = ['attempt-start', 'attempt-start', 'tree-end', 'score-end']
  expect(single).toEqual([...attempts, 'run-end'])
  expect(joined).toEqual(['attempts-start', 'trees-end', 'one run-end'])
})
