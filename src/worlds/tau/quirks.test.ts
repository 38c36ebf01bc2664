import type { PythonDict } from '@espalier/text/python'
import { parseJson } from '@espalier/text/python'
import { beforeAll, describe, expect, it } from 'vitest'
import type { TauDomain } from './domain.ts'
import { loadTau } from './load.ts'
import type { TauTask } from './task.ts'
import { makeTauWorld, type TauWorld } from './world.ts'

const root = 'test/fixtures/tau-checkout'
let domains: Record<'retail' | 'airline', TauDomain>

beforeAll(async () => {
  domains = {
    retail: await loadTau({ root, domain: 'retail' }),
    airline: await loadTau({ root, domain: 'airline' }),
  }
})

/** Opens the world as it is and as it should be. */
function both(name: 'retail' | 'airline'): [faithful: TauWorld, fixed: TauWorld] {
  const domain = domains[name]
  const task = domain.tasks.test?.[0] as TauTask
  return [makeTauWorld(domain, task), makeTauWorld(domain, task, { fixed: true })]
}

function call(world: TauWorld, name: string, kwargs: object): string {
  const step = world.step({ name, kwargs: parseJson(JSON.stringify(kwargs)) as PythonDict })
  return step.kind === 'observed' ? `${step.observation}${step.done ? ' (done)' : ''}` : 'respond'
}

const balanceOf = (world: TauWorld, user: string, card: string): unknown =>
  JSON.parse(call(world, 'get_user_details', { user_id: user })).payment_methods[card]

describe('retail, as it is and mended', () => {
  it('refunds what was refunded before', () => {
    const counts = both('retail').map(world => {
      const order_id = '#W0000003'
      call(world, 'modify_pending_order_payment', { order_id, payment_method_id: 'paypal_0003' })
      call(world, 'cancel_pending_order', { order_id, reason: 'no longer needed' })
      const { payment_history } = JSON.parse(call(world, 'get_order_details', { order_id }))
      const { balance } = balanceOf(world, 'ben_fern_0002', 'gift_card_0004') as { balance: number }
      return [payment_history.length, balance]
    })
    expect(counts).toEqual([
      [6, 154.3],
      [4, 118.1],
    ])
  })

  it('ends with a transfer that was refused', () => {
    const [faithful, fixed] = both('retail')
    expect(call(faithful, 'transfer_to_human_agents', {})).toMatch(/^Error: Transfer.* \(done\)$/)
    expect(call(fixed, 'transfer_to_human_agents', {})).not.toContain('(done)')
    expect(call(fixed, 'transfer_to_human_agents', { summary: '' })).toBe(
      'Transfer successful (done)',
    )
  })
})

describe('airline, as it is and mended', () => {
  it('keeps the old cabin after changing it', () => {
    const update = {
      reservation_id: 'AAA111',
      cabin: 'business',
      flights: [{ flight_number: 'KIT003', date: '2024-05-20' }],
      payment_id: 'credit_card_0011',
    }
    const cabins = both('airline').map(
      world => JSON.parse(call(world, 'update_reservation_flights', update)).cabin,
    )
    expect(cabins).toEqual(['economy', 'business'])
  })

  it('loses connections over midnight, and shows the seats of the wrong day', () => {
    const search = (date: string): unknown[] =>
      both('airline').map(world =>
        JSON.parse(
          call(world, 'search_onestop_flight', { origin: 'SFO', destination: 'JFK', date }),
        ).map(([, second]: [unknown, { date: string; prices: { economy: number } }]) => [
          second.date,
          second.prices.economy,
        ]),
      )
    expect(search('2024-05-08')).toEqual([[], [['2024-05-09', 89]]])
    expect(search('2024-05-20')).toEqual([
      [
        ['2024-05-20', 100],
        ['2024-05-21', 100],
      ],
      [
        ['2024-05-20', 100],
        ['2024-05-21', 101],
      ],
    ])
  })

  it('says that a user is missing where a reservation is', () => {
    const texts = both('airline').map(world =>
      call(world, 'get_reservation_details', { reservation_id: 'ZZZ999' }),
    )
    expect(texts).toEqual(['Error: user not found', 'Error: reservation not found'])
  })

  it('breaks off at the fourth certificate', () => {
    const [faithful, fixed] = both('airline')
    const send = (world: TauWorld): string =>
      call(world, 'send_certificate', { user_id: 'dov_hale_0002', amount: 10 })
    for (const world of [faithful, fixed]) for (let times = 0; times < 3; times++) send(world)
    expect(() => send(faithful)).toThrow('1 validation error for EnvResponse')
    expect(send(fixed)).toBe(
      'Certificate certificate_3221325 added to user dov_hale_0002 with amount 10.',
    )
  })

  it('cancels again and again, and keeps the money of gift cards', () => {
    const [faithful, fixed] = both('airline')
    const cancel = (world: TauWorld): string =>
      call(world, 'cancel_reservation', { reservation_id: '429815' })
    for (const world of [faithful, fixed]) cancel(world)
    expect(JSON.parse(cancel(faithful)).payment_history).toHaveLength(4)
    expect(cancel(fixed)).toBe('Error: reservation is already cancelled')
    expect(balanceOf(faithful, 'dov_hale_0002', 'gift_card_0021')).toMatchObject({ amount: 40 })
    expect(balanceOf(fixed, 'dov_hale_0002', 'gift_card_0021')).toMatchObject({ amount: 182 })
  })

  it('half books with one certificate listed twice', () => {
    const book = (amount: number): object => ({
      user_id: 'cleo_reed_0001',
      origin: 'JFK',
      destination: 'SFO',
      flight_type: 'one_way',
      cabin: 'economy',
      flights: [{ flight_number: 'KIT006', date: '2024-05-23' }],
      passengers: [{ first_name: 'Cleo', last_name: 'Reed', dob: '1990-04-01' }],
      payment_methods: [
        { payment_id: 'certificate_0012', amount },
        { payment_id: 'certificate_0012', amount: 103 - amount },
      ],
      total_baggages: 0,
      nonfree_baggages: 0,
      insurance: 'no',
    })
    const [faithful, fixed] = both('airline')
    expect(call(faithful, 'book_reservation', book(50))).toBe("Error: 'certificate_0012'")
    expect(balanceOf(faithful, 'cleo_reed_0001', 'certificate_0012')).toBeUndefined()
    expect(call(fixed, 'book_reservation', book(50))).toBe(
      'Error: payment method certificate_0012 is listed twice',
    )
    expect(balanceOf(fixed, 'cleo_reed_0001', 'certificate_0012')).toBeDefined()
    expect(call(faithful, 'book_reservation', book(150))).toBe(
      'Error: payment method certificate_0012 not found',
    )
  })

  it('overwrites the third of its own bookings with the fourth', () => {
    const ids = both('airline').map(world =>
      Array.from({ length: 5 }, () => {
        const text = call(world, 'book_reservation', {
          user_id: 'cleo_reed_0001',
          origin: 'JFK',
          destination: 'SFO',
          flight_type: 'one_way',
          cabin: 'economy',
          flights: [],
          passengers: [],
          payment_methods: [],
          total_baggages: 0,
          nonfree_baggages: 0,
          insurance: 'no',
        })
        return JSON.parse(text).reservation_id
      }),
    )
    expect(ids).toEqual([
      ['HATHAT', 'HATHAU', 'HATHAV', 'HATHAV', 'HATHAV'],
      ['HATHAT', 'HATHAU', 'HATHAV', 'HATH00', 'HATH01'],
    ])
  })
})
