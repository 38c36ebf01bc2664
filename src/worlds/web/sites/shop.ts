import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import type { Environment, MadeTask, MakeTasksOptions } from '../../../base/core/environment.ts'
import { type Random, random, seedOf, shuffle } from '../../../base/math/random.ts'
import { lateSchema } from '../../../engine/environments/late.ts'
import { type WebOptions, web } from '../web.ts'
import { type Asked, attachment, choices, html, page, seeOther, serve } from './html.ts'

const deliveries = ['standard', 'express'] as const

function makeSchema() {
  const line = z.object({ product: z.string(), pieces: z.int().min(1) })
  return z.object({
    /** What the shop sells, and its voucher of the month, are a function of this. */
    shop: z.int().min(0),
    goal: z.string().min(1),
    wanted: z.object({
      lines: z.array(line).min(1),
      name: z.string(),
      city: z.string(),
      delivery: z.enum(deliveries),
      voucher: z.string(),
    }),
  })
}

/** What is to be ordered, and where. */
export type ShopTask = z.output<ReturnType<typeof makeSchema>>
type Order = ShopTask['wanted']

interface Product {
  readonly name: string
  readonly kind: string
  /** In cents. */
  readonly price: number
}

const kinds = ['lamp', 'chair', 'clock', 'kettle']
const colours = ['amber', 'blue', 'coral', 'green', 'ivory', 'plum', 'slate', 'white']
const people = ['Ada Bell', 'Ben Cole', 'Cleo Dahl', 'Dan Egger', 'Eve Frost', 'Finn Gray']
const cities = ['Leeds', 'Lyon', 'Graz', 'Turin', 'Ghent', 'Porto']

/** The goods of a shop: three of each kind, no two of a kind at one price. */
function goodsOf(shop: number): readonly Product[] {
  const draw = random(seedOf('web-shop', shop))
  return kinds.flatMap(kind => {
    const prices = shuffle([...Array(20).keys()], draw)
    return shuffle(colours, draw)
      .slice(0, 3)
      .map((colour, index) => ({
        name: `${colour} ${kind}`,
        kind,
        price: 900 + 250 * prices[index]!,
      }))
  })
}

function voucherOf(shop: number): string {
  return `SAVE${1000 + Math.floor(random(seedOf('web-shop-voucher', shop))() * 9000)}`
}

const euros = (cents: number): string => `€${(cents / 100).toFixed(2)}`

/** A shop with a cart, a checkout, vouchers and receipts; the reward is the order as it was placed. */
export function webShop(options: WebOptions = {}): Environment<ShopTask> {
  return web({
    ...options,
    name: 'web-shop',
    task: lateSchema(makeSchema),
    open({ data }) {
      const shop = new Shop(data.shop)
      return {
        goal: data.goal,
        start: 'http://shop.test/',
        sites: { 'shop.test': serve('The shop', shop.routes) },
        report: () => ({ orders: shop.orders }),
      }
    },
    reward: {
      ordered: ({ task: { data }, report: { site } }) =>
        Number(site.orders.length === 1 && isDeepStrictEqual(site.orders[0], sorted(data.wanted))),
      items: {
        weight: 0,
        score: ({ task: { data }, report: { site } }) =>
          Number(isDeepStrictEqual(site.orders[0]?.lines, sorted(data.wanted).lines)),
      },
    },
    makeTasks: shopTasks,
    splits: ['train', 'held-out'],
  })
}

function sorted(order: Order): Order {
  const lines = [...order.lines].sort((one, other) => (one.product < other.product ? -1 : 1))
  return { ...order, lines }
}

/** The shop of one attempt. */
class Shop {
  readonly orders: Order[] = []
  readonly #shop: number
  readonly #goods: readonly Product[]
  readonly #cart = new Map<string, number>()

  constructor(shop: number) {
    this.#shop = shop
    this.#goods = goodsOf(shop)
  }

  readonly routes = {
    'GET /': ({ query }: Asked) => this.#home(query.get('q') ?? '', query.get('kind') ?? ''),
    'GET /product': ({ query }: Asked) => this.#product(query.get('name') ?? ''),
    'GET /cart': () => this.#cartPage(),
    'POST /cart': ({ form }: Asked) =>
      this.#put(form.get('name') ?? '', Number(form.get('pieces'))),
    'GET /checkout': () => this.#checkout(''),
    'POST /checkout': ({ form }: Asked) => this.#place(form),
    'GET /order': ({ query }: Asked) => this.#order(Number(query.get('number'))),
    'GET /receipt': ({ query }: Asked) => this.#receipt(Number(query.get('number'))),
    'GET /vouchers': () =>
      page(
        'The shop',
        'Vouchers',
        html`<p>The voucher of this month is <b>${voucherOf(this.#shop)}</b>.</p>`,
      ),
  }

  #home(text: string, kind: string): Response {
    const found = this.#goods.filter(
      product =>
        product.name.includes(text.trim().toLowerCase()) && (kind === '' || product.kind === kind),
    )
    const rows = found.map(
      ({ name, price }) =>
        html`<tr><td><a href="/product?name=${encodeURIComponent(name)}">${name}</a></td><td>${euros(price)}</td></tr>`,
    )
    return page(
      'The shop',
      'Goods',
      html`<p><a href="/cart">Cart (${this.#cart.size})</a> <a href="/vouchers" target="_blank">Vouchers</a></p>
<form><label>Search <input name="q" value="${text}"></label>${choices('kind', 'Kind', ['', ...kinds], kind)}<button>Find</button></form>
<table><tr><th>Name</th><th>Price</th></tr>${rows}</table>`,
    )
  }

  #product(name: string): Response | undefined {
    const product = this.#goods.find(each => each.name === name)
    if (!product) return undefined
    return page(
      'The shop',
      product.name,
      html`<p>${euros(product.price)} a piece</p><form method="post" action="/cart"><input type="hidden" name="name" value="${name}">
<label>Pieces <input name="pieces" type="number" min="1" value="1"></label><button>Put into the cart</button></form>`,
    )
  }

  #put(name: string, pieces: number): Response | undefined {
    const isKnown = this.#goods.some(each => each.name === name)
    if (!isKnown || !Number.isInteger(pieces) || pieces < 0 || pieces > 99) return undefined
    if (pieces === 0) this.#cart.delete(name)
    else this.#cart.set(name, pieces)
    return seeOther('/cart')
  }

  #cartPage(): Response {
    if (this.#cart.size === 0) return page('The shop', 'Cart', html`<p>The cart is empty.</p>`)
    const rows = [...this.#cart].map(
      ([name, pieces]) =>
        html`<tr><td>${name}</td><td>${pieces}</td><td><form method="post" action="/cart"><input type="hidden" name="name" value="${name}"><input type="hidden" name="pieces" value="0"><button>Remove ${name}</button></form></td></tr>`,
    )
    return page(
      'The shop',
      'Cart',
      html`<table><tr><th>Name</th><th>Pieces</th><th></th></tr>${rows}</table><p><a href="/checkout">Check out</a></p>`,
    )
  }

  #checkout(problem: string): Response {
    return page(
      'The shop',
      'Check out',
      html`${problem && html`<p role="alert">${problem}</p>`}<form method="post"><label>Name <input name="name"></label><label>City <input name="city"></label>
${choices('delivery', 'Delivery', deliveries)}<label>Voucher <input name="voucher"></label><button>Place the order</button></form>`,
    )
  }

  #place(form: URLSearchParams): Response {
    const of = (name: string): string => (form.get(name) ?? '').trim()
    const delivery = deliveries.find(each => each === of('delivery'))
    if (this.#cart.size === 0) return this.#checkout('The cart is empty.')
    if (of('name') === '' || of('city') === '' || !delivery)
      return this.#checkout('Name, city and delivery are needed.')
    if (of('voucher') !== '' && of('voucher') !== voucherOf(this.#shop))
      return this.#checkout('There is no such voucher.')
    const lines = [...this.#cart].map(([product, pieces]) => ({ product, pieces }))
    const { length } = this.orders
    this.orders.push(
      sorted({ lines, name: of('name'), city: of('city'), delivery, voucher: of('voucher') }),
    )
    this.#cart.clear()
    return seeOther(`/order?number=${length + 1}`)
  }

  #order(number: number): Response | undefined {
    const order = this.orders[number - 1]
    if (!order) return undefined
    return page(
      'The shop',
      `Order ${number}`,
      html`<p>Thank you, ${order.name}. It goes to ${order.city}, ${order.delivery}.</p><p><a href="/receipt?number=${number}">Download the receipt</a></p>`,
    )
  }

  #receipt(number: number): Response | undefined {
    const lines = this.orders[number - 1]?.lines.map(
      ({ product, pieces }) => `${product},${pieces}`,
    )
    return lines && attachment(`receipt-${number}.csv`, `product,pieces\n${lines.join('\n')}\n`)
  }
}

/** Orders in the seed's order; those of other shops are held out. */
function shopTasks({
  count,
  seed,
  split = 'train',
}: MakeTasksOptions): readonly MadeTask<ShopTask>[] {
  return Array.from({ length: count }, (_, index) => {
    const draw = random(seedOf(seed, 'web-shop', split, index))
    const shop = 2 * Math.floor(draw() * 5000) + Number(split === 'held-out')
    return { id: `${split}-${index}`, data: shopTask(shop, draw) }
  })
}

function shopTask(shop: number, draw: Random): ShopTask {
  const pick = <T>(from: readonly T[]): T => from[Math.floor(draw() * from.length)]!
  const goods = goodsOf(shop)
  const chosen = shuffle(kinds, draw).slice(0, 1 + Math.floor(draw() * 2))
  const asked = chosen.map(kind => {
    const of = goods.filter(each => each.kind === kind)
    const pieces = 1 + Math.floor(draw() * 4)
    const isCheapest = draw() < 0.5
    const product = isCheapest
      ? of.reduce((least, each) => (each.price < least.price ? each : least))
      : pick(of)
    const words = isCheapest ? `the cheapest ${kind}` : `the ${product.name}`
    return { line: { product: product.name, pieces }, words: `${pieces} of ${words}` }
  })
  const [name, city, delivery] = [pick(people), pick(cities), pick(deliveries)]
  const voucher = draw() < 0.5 ? voucherOf(shop) : ''
  const goal = `Order ${asked.map(({ words }) => words).join(' and ')} for ${name} in ${city}, by ${delivery} delivery, ${
    voucher ? 'with the voucher of this month' : 'without a voucher'
  }. Say done when the order is placed.`
  return {
    shop,
    goal,
    wanted: { lines: asked.map(({ line }) => line), name, city, delivery, voucher },
  }
}
