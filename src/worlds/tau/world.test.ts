import { createHash } from 'node:crypto'
import type { PythonDict } from '@espalier/text/python'
import { parseJson } from '@espalier/text/python'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { canonical } from './canonical.ts'
import type { TauDomain } from './domain.ts'
import { loadTau } from './load.ts'
import type { TauAction, TauTask } from './task.ts'
import { makeTauWorld, type TauWorld, type TauWorldOptions } from './world.ts'

const root = 'test/fixtures/tau-checkout'
let retail: TauDomain
let airline: TauDomain

beforeAll(async () => {
  retail = await loadTau({ root, domain: 'retail' })
  airline = await loadTau({ root, domain: 'airline' })
})

const action = (name: string, kwargs: string): TauAction => ({
  name,
  kwargs: parseJson(kwargs) as PythonDict,
})

const taskOf = (domain: TauDomain, split: string, index: number): TauTask =>
  domain.tasks[split]?.[index] as TauTask

const open = (domain: TauDomain, options: TauWorldOptions = {}): TauWorld =>
  makeTauWorld(domain, taskOf(domain, 'test', 0), options)

function call(world: TauWorld, name: string, kwargs: object | string): string {
  const text = typeof kwargs === 'string' ? kwargs : JSON.stringify(kwargs)
  const step = world.step(action(name, text))
  return step.kind === 'observed' ? step.observation : `respond ${step.content}`
}

const everything = (): (readonly [TauDomain, string, TauTask])[] =>
  [retail, airline].flatMap(domain =>
    Object.entries(domain.tasks).flatMap(([split, tasks]) =>
      tasks.map(task => [domain, split, task] as const),
    ),
  )

describe('reward', () => {
  it('is 1 for the actions of the task itself, with its outputs said', () => {
    for (const [domain, , task] of everything()) {
      const world = makeTauWorld(domain, task)
      for (const each of task.actions) world.step(each)
      const said = `It is ${task.outputs.join(' and ').toUpperCase()}, as you know.`
      world.step({ name: 'respond', kwargs: new Map([['content', said]]) })
      expect(world.calculateReward().reward).toBe(1)
    }
  })

  it('is 0 where the database is wrong, and says what it should have been', () => {
    const task = taskOf(retail, 'train', 0)
    const world = makeTauWorld(retail, task)
    const { reward, info } = world.calculateReward()
    expect(reward).toBe(0)
    expect(info).toEqual({ r_actions: 0, gt_data_hash: world.hash() })
    expect(world.actions).toEqual(task.actions)
  })

  it('takes commas out of what was said, and is 0 where an output is missing', () => {
    const task = { ...taskOf(retail, 'dev', 0), outputs: ['1234', 'Bus'] }
    const world = makeTauWorld(retail, task)
    world.step(action('respond', '{"content": "1,234 by bus"}'))
    expect(world.fork().calculateReward().reward).toBe(1)
    const other = makeTauWorld(retail, { ...task, outputs: ['1,234'] })
    other.step(action('respond', '{"content": "1,234"}'))
    const { reward, info } = other.calculateReward()
    expect([reward, info]).toEqual([0, { r_outputs: 0, outputs: new Map([['1,234', false]]) }])
  })
})

describe('database', () => {
  it('hashes like the canonical text of all tables', () => {
    const world = open(airline)
    const whole = (changes: PythonDict): string => {
      const tables: PythonDict = new Map()
      for (const name of airline.tables.names) {
        const rows: PythonDict = new Map(airline.tables.table(name))
        if (name === 'reservations') for (const [id, row] of changes) rows.set(id, row)
        tables.set(name, rows)
      }
      return createHash('sha256').update(canonical(tables)).digest('hex')
    }
    expect(world.hash()).toBe(whole(new Map()))
    const changed = parseJson(call(world, 'cancel_reservation', { reservation_id: '429815' }))
    expect(world.hash()).toBe(whole(new Map([['429815', changed]])))
  })

  it('is shared: what one world does, no other sees', () => {
    const before = open(retail).hash()
    const world = open(retail)
    const cancel = { order_id: '#W0000003', reason: 'no longer needed' }
    expect(call(world, 'cancel_pending_order', cancel)).toContain('"cancelled"')
    expect(world.hash()).not.toBe(before)
    expect(open(retail).hash()).toBe(before)
  })

  it('[R3] never lets forks see each other, whatever they do', () => {
    const moves = fc.constantFrom(
      action('cancel_reservation', '{"reservation_id": "AAA111"}'),
      action('cancel_reservation', '{"reservation_id": "429815"}'),
      action('send_certificate', '{"user_id": "cleo_reed_0001", "amount": 50}'),
      action(
        'update_reservation_baggages',
        '{"reservation_id": "AAA111", "total_baggages": 3, "nonfree_baggages": 2, "payment_id": "gift_card_0013"}',
      ),
    )
    const sequences = fc.array(moves, { maxLength: 3 })
    const replay = (...parts: readonly TauAction[][]): string => {
      const world = open(airline)
      for (const each of parts.flat()) world.step(each)
      return world.hash()
    }
    fc.assert(
      fc.property(sequences, sequences, sequences, (shared, left, right) => {
        const world = open(airline)
        for (const each of shared) world.step(each)
        const fork = world.fork()
        for (const each of left) world.step(each)
        for (const each of right) fork.step(each)
        expect(world.hash()).toBe(replay(shared, left))
        expect(fork.hash()).toBe(replay(shared, right))
        expect(fork.actions).toEqual([...shared, ...right])
      }),
      { numRuns: process.env.ESPALIER_SOAK ? 1000 : 40, seed: 9 },
    )
  })
})

describe('binding', () => {
  it.each([
    [
      '{"data": 1}',
      "tau_bench.envs.retail.tools.cancel_pending_order.CancelPendingOrder.invoke() got multiple values for keyword argument 'data'",
    ],
    ['{"why": 1}', "CancelPendingOrder.invoke() got an unexpected keyword argument 'why'"],
    [
      '{}',
      "CancelPendingOrder.invoke() missing 2 required positional arguments: 'order_id' and 'reason'",
    ],
    [
      '{"reason": 1}',
      "CancelPendingOrder.invoke() missing 1 required positional argument: 'order_id'",
    ],
    ['{"order_id": [], "reason": 1}', "unhashable type: 'list'"],
  ])('%s is refused in the words of Python', (kwargs, expected) => {
    expect(call(open(retail), 'cancel_pending_order', kwargs)).toBe(`Error: ${expected}`)
  })

  it('lists three missing arguments and more with a comma before the last', () => {
    expect(call(open(retail), 'find_user_id_by_name_zip', '{}')).toBe(
      "Error: FindUserIdByNameZip.invoke() missing 3 required positional arguments: 'first_name', 'last_name', and 'zip'",
    )
  })

  it('knows no other tools, and hands words to the user', () => {
    expect(call(open(retail), 'book_reservation', '{}')).toBe('Unknown action book_reservation')
    expect(call(open(retail), 'respond', '{"content": "hi", "more": 1}')).toBe('respond hi')
    expect(() => open(retail).step(action('respond', '{}'))).toThrow("'content'")
  })
})

describe('numbers', () => {
  it('keep the type and the dust that Python gives them', () => {
    const swap = {
      order_id: '#W0000001',
      item_ids: ['3000000011', '3000000021'],
      new_item_ids: ['3000000012', '3000000022'],
      payment_method_id: 'gift_card_0002',
    }
    expect(call(open(retail), 'modify_pending_order_items', swap)).toContain(
      '"amount": 3.1499999999999986,',
    )
    const world = open(retail, { fixed: true })
    expect(call(world, 'modify_pending_order_items', swap)).toContain('"amount": 3.15,')
    expect(call(world, 'get_user_details', { user_id: 'ada_moss_0001' })).toContain(
      '"balance": 16.85,',
    )
  })

  it('tell an int from a float, down to the hash', () => {
    const send = (amount: string): TauWorld => {
      const world = open(airline)
      call(world, 'send_certificate', `{"user_id": "dov_hale_0002", "amount": ${amount}}`)
      return world
    }
    expect(send('100').hash()).not.toBe(send('100.0').hash())
    expect(send('100').hash()).toBe(send('100').hash())
  })
})
