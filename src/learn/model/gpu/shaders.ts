// The kernels, in WGSL. Every array is row-major and whole; where a kernel begins in one is among its numbers.

/** How a kernel is bound: what its arrays are called, and whether it writes them. */
interface Kernel {
  /** Numbers that differ from run to run: u for whole ones, f for others. */
  readonly numbers: readonly `${'u' | 'f'} ${string}`[]
  /** `x` is read, `x=` written. */
  readonly arrays: readonly string[]
  readonly code: string
}

/** Loops over `count` things with every thread there is. */
const everyOne = (code: string) => `
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  for (var at = id.x; at < p.count; at += groups.x * 256u) { ${code} }
}`

/** One workgroup for each of many rows, with sums and maxima over it. */
const byRow = (code: string) => `
var<workgroup> lanes: array<f32, 64>;
fn sum(value: f32, lane: u32) -> f32 {
  lanes[lane] = value;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { lanes[lane] += lanes[lane + half]; }
  }
  workgroupBarrier();
  let total = workgroupUniformLoad(&lanes[0]);
  workgroupBarrier();
  return total;
}
fn largest(value: f32, lane: u32) -> f32 {
  lanes[lane] = value;
  for (var half = 32u; half > 0u; half /= 2u) {
    workgroupBarrier();
    if (lane < half) { lanes[lane] = max(lanes[lane], lanes[lane + half]); }
  }
  workgroupBarrier();
  let peak = workgroupUniformLoad(&lanes[0]);
  workgroupBarrier();
  return peak;
}
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_id) local: vec3u) {
  let lane = local.x;
  let index = group.x * groups.y + group.y;
  ${code}
}`

/** A half in bfloat16 beside another in one word. */
const readWeight = `
fn weight(at: u32) -> f32 {
  if (p.halves == 0u) { return bitcast<f32>(b[at]); }
  let word = b[at / 2u];
  return bitcast<f32>(select(word << 16u, word & 0xffff0000u, at % 2u == 1u));
}`

/** C = alpha · A B + beta · C, by strides: rows and columns of A and B may lie either way. */
const product: Kernel = {
  numbers: [
    ...(['u rows', 'u columns', 'u inner', 'u halves', 'u a', 'u aRow', 'u aInner'] as const),
    ...(['u b', 'u bColumn', 'u bInner', 'u c', 'u cRow', 'f alpha', 'f beta'] as const),
  ],
  arrays: ['a', 'b:u32', 'c='],
  code: `${readWeight}
var<workgroup> left: array<f32, 512>;
var<workgroup> right: array<f32, 512>;
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u) {
  let thread = local.y * 16u + local.x;
  let row = group.y * 32u;
  let column = group.x * 32u;
  var sums = vec4f();
  for (var first = 0u; first < p.inner; first += 16u) {
    for (var part = 0u; part < 2u; part++) {
      let at = thread + part * 256u;
      let line = at / 16u;
      let k = first + at % 16u;
      var value = 0.0;
      if (row + line < p.rows && k < p.inner) {
        value = a[p.a + (row + line) * p.aRow + k * p.aInner];
      }
      left[at] = value;
      value = 0.0;
      if (column + line < p.columns && k < p.inner) {
        value = weight(p.b + (column + line) * p.bColumn + k * p.bInner);
      }
      right[at] = value;
    }
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let x = vec2f(left[local.y * 16u + k], left[(local.y + 16u) * 16u + k]);
      let y = vec2f(right[local.x * 16u + k], right[(local.x + 16u) * 16u + k]);
      sums += vec4f(x.x * y, x.y * y);
    }
    workgroupBarrier();
  }
  for (var part = 0u; part < 4u; part++) {
    let line = row + local.y + (part / 2u) * 16u;
    let place = column + local.x + (part % 2u) * 16u;
    if (line >= p.rows || place >= p.columns) { continue; }
    let at = p.c + line * p.cRow + place;
    var value = p.alpha * sums[part];
    if (p.beta != 0.0) { value += p.beta * c[at]; }
    c[at] = value;
  }
}`,
}

/** Rows of the embedding, of which a part may lie here: of the ids from `first` on. */
const embed: Kernel = {
  numbers: ['u count', 'u width', 'u halves', 'u first', 'u rows', 'f scale'],
  arrays: ['ids:u32', 'b:u32', 'out='],
  code: `${readWeight}
${everyOne(`
    let row = ids[at / p.width] - p.first;
    if (row < p.rows) { out[at] = p.scale * weight(row * p.width + at % p.width); }`)}`,
}

/** Rows divided by their root mean square. */
const norm: Kernel = {
  numbers: ['u width', 'u weight', 'f epsilon'],
  arrays: ['x', 'w', 'out='],
  code: byRow(`
  let row = index * p.width;
  var squares = 0.0;
  for (var at = lane; at < p.width; at += 64u) { squares += x[row + at] * x[row + at]; }
  let scale = inverseSqrt(sum(squares, lane) / f32(p.width) + p.epsilon);
  for (var at = lane; at < p.width; at += 64u) {
    out[row + at] = x[row + at] * scale * w[p.weight + at];
  }`),
}

/** The gradient of `norm`, added to `beta` times what is there. */
const normBack: Kernel = {
  numbers: ['u width', 'u weight', 'f epsilon', 'f beta'],
  arrays: ['x', 'w', 'dy', 'dx='],
  code: byRow(`
  let row = index * p.width;
  var squares = 0.0;
  var along = 0.0;
  for (var at = lane; at < p.width; at += 64u) {
    squares += x[row + at] * x[row + at];
    along += x[row + at] * dy[row + at] * w[p.weight + at];
  }
  let scale = inverseSqrt(sum(squares, lane) / f32(p.width) + p.epsilon);
  let back = sum(along, lane) * scale * scale * scale / f32(p.width);
  for (var at = lane; at < p.width; at += 64u) {
    var value = dy[row + at] * w[p.weight + at] * scale - x[row + at] * back;
    if (p.beta != 0.0) { value += p.beta * dx[row + at]; }
    dx[row + at] = value;
  }`),
}

/** Heads turned by their positions, forward or back (or only copied, by 0), to the cells that tokens have. */
const turn: Kernel = {
  numbers: ['u count', 'u width', 'u size', 'u scatters', 'f direction'],
  arrays: ['tokens:Token', 'angles', 'x', 'out='],
  code: everyOne(`
    let half = p.size / 2u;
    let token = at / (p.width / 2u);
    let pair = at % (p.width / 2u);
    let low = (pair / half) * p.size + pair % half;
    let start = token * p.width + low;
    let to = select(token, tokens[token].cell, p.scatters == 1u) * p.width + low;
    let angle = 2u * (tokens[token].position * half + pair % half);
    var cosine = angles[angle];
    var sine = angles[angle + 1u] * p.direction;
    if (p.direction == 0.0) { cosine = 1.0; }
    let first = x[start];
    let second = x[start + half];
    out[to] = first * cosine - second * sine;
    out[to + half] = second * cosine + first * sine;`),
}

/** What attention reads of a token: where the key at a place of its path lies. */
const cellAt = `
fn cellAt(table: u32, place: u32) -> u32 {
  return (paths[table + (place >> p.shift)] << p.shift) + (place & ((1u << p.shift) - 1u));
}`

const attentionNumbers = [
  ...(['u heads', 'u keyHeads', 'u size', 'u shift', 'u window', 'f scale'] as const),
] as const

/** A head's mean of the values before a token, by how its query meets their keys; and the logarithm of the sum. */
const attend: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'paths:u32', 'q', 'k', 'v', 'out=', 'stats=:vec2f'],
  code: `${cellAt}
var<workgroup> scores: array<f32, 64>;
${byRow(`
  let t = group.x;
  let token = tokens[t];
  let query = (t * p.heads + group.y) * p.size;
  let head = (group.y / (p.heads / p.keyHeads)) * p.size;
  let keys = p.keyHeads * p.size;
  let end = token.position + 1u;
  let begin = select(0u, end - min(end, p.window), p.window > 0u);
  var peak = -3.0e38;
  var total = 0.0;
  for (var at = lane; at < p.size; at += 64u) { out[query + at] = 0.0; }
  for (var first = begin; first < end; first += 64u) {
    var score = -3.0e38;
    if (first + lane < end) {
      let key = cellAt(token.path, first + lane) * keys + head;
      score = 0.0;
      for (var at = 0u; at < p.size; at++) { score += q[query + at] * k[key + at]; }
      score *= p.scale;
    }
    let higher = max(peak, largest(score, lane));
    let kept = exp(peak - higher);
    let share = select(0.0, exp(score - higher), first + lane < end);
    scores[lane] = share;
    total = total * kept + sum(share, lane);
    peak = higher;
    let some = min(64u, end - first);
    for (var at = lane; at < p.size; at += 64u) {
      var mean = out[query + at] * kept;
      for (var each = 0u; each < some; each++) {
        mean += scores[each] * v[cellAt(token.path, first + each) * keys + head + at];
      }
      out[query + at] = mean;
    }
    workgroupBarrier();
  }
  for (var at = lane; at < p.size; at += 64u) { out[query + at] /= total; }
  if (lane == 0u) { stats[t * p.heads + group.y].x = peak + log(total); }`)}`,
}

/** Products of rows of heads: what their softmax takes off the gradient. */
const along: Kernel = {
  numbers: ['u size'],
  arrays: ['x', 'dx', 'stats=:vec2f'],
  code: byRow(`
  var total = 0.0;
  for (var at = lane; at < p.size; at += 64u) {
    total += x[index * p.size + at] * dx[index * p.size + at];
  }
  let whole = sum(total, lane);
  if (lane == 0u) { stats[index].y = whole; }`),
}

/** The gradient of a query. */
const attendBackQueries: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'paths:u32', 'q', 'k', 'v', 'dy', 'stats:vec2f', 'dq='],
  code: `${cellAt}
var<workgroup> slopes: array<f32, 64>;
${byRow(`
  let t = group.x;
  let token = tokens[t];
  let row = t * p.heads + group.y;
  let query = row * p.size;
  let head = (group.y / (p.heads / p.keyHeads)) * p.size;
  let keys = p.keyHeads * p.size;
  let end = token.position + 1u;
  let begin = select(0u, end - min(end, p.window), p.window > 0u);
  for (var at = lane; at < p.size; at += 64u) { dq[query + at] = 0.0; }
  for (var first = begin; first < end; first += 64u) {
    var slope = 0.0;
    if (first + lane < end) {
      let key = cellAt(token.path, first + lane) * keys + head;
      var score = 0.0;
      var pull = 0.0;
      for (var at = 0u; at < p.size; at++) {
        score += q[query + at] * k[key + at];
        pull += dy[query + at] * v[key + at];
      }
      slope = exp(score * p.scale - stats[row].x) * (pull - stats[row].y) * p.scale;
    }
    slopes[lane] = slope;
    workgroupBarrier();
    let some = min(64u, end - first);
    for (var at = lane; at < p.size; at += 64u) {
      var value = dq[query + at];
      for (var each = 0u; each < some; each++) {
        value += slopes[each] * k[cellAt(token.path, first + each) * keys + head + at];
      }
      dq[query + at] = value;
    }
    workgroupBarrier();
  }`)}`,
}

/** The gradient of a key and a value: over what follows its token, which lies behind it without a gap. */
const attendBackKeys: Kernel = {
  numbers: attentionNumbers,
  arrays: ['tokens:Token', 'q', 'k', 'v', 'dy', 'stats:vec2f', 'dk=', 'dv='],
  code: `
var<workgroup> shares: array<f32, 64>;
var<workgroup> slopes: array<f32, 64>;
${byRow(`
  let j = group.x;
  let key = (j * p.keyHeads + group.y) * p.size;
  let each = p.heads / p.keyHeads;
  let end = tokens[j].end;
  for (var at = lane; at < p.size; at += 64u) { dk[key + at] = 0.0; dv[key + at] = 0.0; }
  let count = (end - j) * each;
  for (var first = 0u; first < count; first += 64u) {
    var share = 0.0;
    var slope = 0.0;
    let t = j + (first + lane) / each;
    let row = t * p.heads + group.y * each + (first + lane) % each;
    if (first + lane < count
      && (p.window == 0u || tokens[t].position - tokens[j].position < p.window)) {
      var score = 0.0;
      var pull = 0.0;
      for (var at = 0u; at < p.size; at++) {
        score += q[row * p.size + at] * k[key + at];
        pull += dy[row * p.size + at] * v[key + at];
      }
      share = exp(score * p.scale - stats[row].x);
      slope = share * (pull - stats[row].y) * p.scale;
    }
    shares[lane] = share;
    slopes[lane] = slope;
    workgroupBarrier();
    let some = min(64u, count - first);
    for (var at = lane; at < p.size; at += 64u) {
      var toKey = dk[key + at];
      var toValue = dv[key + at];
      for (var one = 0u; one < some; one++) {
        let start = ((j + (first + one) / each) * p.heads + group.y * each + (first + one) % each)
          * p.size + at;
        toKey += slopes[one] * q[start];
        toValue += shares[one] * dy[start];
      }
      dk[key + at] = toKey;
      dv[key + at] = toValue;
    }
    workgroupBarrier();
  }`)}`,
}

/** The unit's activation and its slope, by a gate. */
const activation = `
fn bent(x: f32) -> vec2f {
  if (p.tanh == 0u) {
    let sigmoid = 1.0 / (1.0 + exp(-x));
    return vec2f(x * sigmoid, sigmoid * (1.0 + x * (1.0 - sigmoid)));
  }
  let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  let bend = 1.0 - 2.0 / (exp(2.0 * clamp(inner, -20.0, 20.0)) + 1.0);
  let steep = 0.7978845608028654 * (1.0 + 0.134145 * x * x);
  return vec2f(0.5 * x * (1.0 + bend), 0.5 * (1.0 + bend) + 0.5 * x * (1.0 - bend * bend) * steep);
}`

const gate: Kernel = {
  numbers: ['u count', 'u tanh'],
  arrays: ['g', 'u', 'out='],
  code: `${activation}${everyOne('out[at] = bent(g[at]).x * u[at];')}`,
}

const gateBack: Kernel = {
  numbers: ['u count', 'u tanh'],
  arrays: ['dy', 'g=', 'u='],
  code: `${activation}${everyOne(`
    let both = bent(g[at]);
    let up = u[at];
    u[at] = dy[at] * both.x;
    g[at] = dy[at] * up * both.y;`)}`,
}

/** The same numbers on every row, as biases are: `by` times them, added to `beta` times what is there. */
const fill: Kernel = {
  numbers: ['u count', 'u width', 'u start', 'f by', 'f beta'],
  arrays: ['x', 'out='],
  code: everyOne(`
    var value = p.by * x[p.start + at % p.width];
    if (p.beta != 0.0) { value += p.beta * out[at]; }
    out[at] = value;`),
}

/** Some rows of many. */
const gather: Kernel = {
  numbers: ['u count', 'u width', 'u first'],
  arrays: ['places:u32', 'x', 'out='],
  code: everyOne('out[at] = x[places[p.first + at / p.width] * p.width + at % p.width];'),
}

/** Adds rows to those that they were gathered from; rows of one token follow each other. */
const spread: Kernel = {
  numbers: ['u count', 'u width', 'u first', 'u rows'],
  arrays: ['places:u32', 'x', 'out='],
  code: everyOne(`
    let token = places[p.first + at / p.width];
    let row = at / p.width;
    if (row == 0u || places[p.first + row - 1u] != token) {
      var total = 0.0;
      for (var each = row; each < p.rows && places[p.first + each] == token; each++) {
        total += x[each * p.width + at % p.width];
      }
      out[token * p.width + at % p.width] += total;
    }`),
}

/** The distribution of a row of logits: of its target, or of an id that is drawn. */
const distribute: Kernel = {
  numbers: ['u vocabulary', 'u first'],
  arrays: ['rows:Row', 'logits=', 'found=:Found'],
  code: `
var<workgroup> counts: array<u32, 64>;
var<workgroup> chosen: u32;
${byRow(`
  let row = rows[p.first + group.x];
  let start = group.x * p.vocabulary;
  var own = -3.0e38;
  for (var at = lane; at < p.vocabulary; at += 64u) {
    let value = logits[start + at] * row.inverse;
    logits[start + at] = value;
    own = max(own, value);
  }
  let peak = largest(own, lane);
  var weights = 0.0;
  var moments = 0.0;
  for (var at = lane; at < p.vocabulary; at += 64u) {
    let distance = logits[start + at] - peak;
    weights += exp(distance);
    moments += exp(distance) * distance;
  }
  let total = sum(weights, lane);
  let moment = sum(moments, lane);
  if (row.goal >= 0.0) {
    var least = row.minP;
    if (row.topK > 0u && row.topK < p.vocabulary) {
      // Weights are positive, so that their bits are in their order: the k-th heaviest is found bit by bit.
      var bits = 0u;
      for (var bit = 0x40000000u; bit > 0u; bit /= 2u) {
        var count = 0.0;
        for (var at = lane; at < p.vocabulary; at += 64u) {
          if (bitcast<u32>(exp(logits[start + at] - peak)) >= (bits | bit)) { count += 1.0; }
        }
        if (u32(sum(count, lane)) >= row.topK) { bits |= bit; }
      }
      least = max(least, bitcast<f32>(bits));
    }
    if (row.topP < 1.0) {
      var kept = 0.0;
      for (var at = lane; at < p.vocabulary; at += 64u) {
        let weight = exp(logits[start + at] - peak);
        if (weight >= least) { kept += weight; }
      }
      let limit = sum(kept, lane) * row.topP;
      var bits = 0u;
      for (var bit = 0x40000000u; bit > 0u; bit /= 2u) {
        var mass = 0.0;
        for (var at = lane; at < p.vocabulary; at += 64u) {
          let weight = exp(logits[start + at] - peak);
          if (bitcast<u32>(weight) >= (bits | bit)) { mass += weight; }
        }
        if (sum(mass, lane) >= limit) { bits |= bit; }
      }
      least = max(least, bitcast<f32>(bits));
    }
    // Each lane has ids that follow each other: the first whose weights pass the goal is drawn.
    let each = (p.vocabulary + 63u) / 64u;
    let begin = lane * each;
    let end = min(begin + each, p.vocabulary);
    var own = 0.0;
    for (var at = begin; at < end; at++) {
      let weight = exp(logits[start + at] - peak);
      if (weight >= least) { own += weight; }
    }
    lanes[lane] = own;
    workgroupBarrier();
    if (lane == 0u) {
      var all = 0.0;
      for (var at = 0u; at < 64u; at++) { all += lanes[at]; }
      let goal = row.goal * all;
      var passed = 0.0;
      var last = 0u;
      var isFound = false;
      for (var part = 0u; part < 64u && !isFound; part++) {
        if (lanes[part] == 0.0) { continue; }
        if (passed + lanes[part] <= goal) {
          passed += lanes[part];
          last = min((part + 1u) * each, p.vocabulary) - 1u;
          continue;
        }
        for (var at = part * each; at < min((part + 1u) * each, p.vocabulary); at++) {
          let weight = exp(logits[start + at] - peak);
          if (weight < least) { continue; }
          passed += weight;
          last = at;
          if (passed > goal) { isFound = true; break; }
        }
        isFound = true;
      }
      chosen = last;
    }
    workgroupBarrier();
  } else if (row.wanted < 0) {
    var best = p.vocabulary;
    for (var at = lane; at < p.vocabulary; at += 64u) {
      if (logits[start + at] == peak) { best = min(best, at); }
    }
    counts[lane] = best;
    workgroupBarrier();
    if (lane == 0u) {
      for (var at = 1u; at < 64u; at++) { best = min(best, counts[at]); }
      chosen = best;
    }
    workgroupBarrier();
  }
  if (lane == 0u) {
    let id = select(chosen, u32(row.wanted), row.wanted >= 0);
    let whole = log(total);
    found[p.first + group.x] =
      Found(id, logits[start + id] - peak - whole, whole - moment / total, peak + whole);
  }`)}`,
}

/** The gradient of logits, in their place: (g (δ − p) − h p (log p + H)) / T. */
const distributeBack: Kernel = {
  numbers: ['u count', 'u vocabulary', 'u first'],
  arrays: ['rows:Row', 'found:Found', 'slopes:vec2f', 'logits='],
  code: everyOne(`
    let row = p.first + at / p.vocabulary;
    let slope = slopes[row] * rows[row].inverse;
    let logprob = logits[at] - found[row].sum;
    var value = -exp(logprob) * (slope.x + slope.y * (logprob + found[row].entropy));
    if (at % p.vocabulary == found[row].id) { value += slope.x; }
    logits[at] = value;`),
}

/** Sums of squares, one per workgroup. */
const squares: Kernel = {
  numbers: ['u count', 'u groups'],
  arrays: ['x', 'out='],
  code: byRow(`
  var total = 0.0;
  for (var at = group.x * 64u + lane; at < p.count; at += p.groups * 64u) {
    total += x[at] * x[at];
  }
  let whole = sum(total, lane);
  if (lane == 0u) { out[group.x] = whole; }`),
}

/** AdamW; the gradient starts anew. */
const update: Kernel = {
  numbers: [
    ...(['u count', 'f rate', 'f decay', 'f beta1', 'f beta2', 'f epsilon', 'f scale'] as const),
    ...(['f correction1', 'f correction2'] as const),
  ],
  arrays: ['values=', 'gradient=', 'moment1=', 'moment2='],
  code: everyOne(`
    let slope = gradient[at] * p.scale;
    gradient[at] = 0.0;
    let first = p.beta1 * moment1[at] + (1.0 - p.beta1) * slope;
    let second = p.beta2 * moment2[at] + (1.0 - p.beta2) * slope * slope;
    moment1[at] = first;
    moment2[at] = second;
    let step = first * p.correction1 / (sqrt(second * p.correction2) + p.epsilon);
    values[at] -= p.rate * (step + p.decay * values[at]);`),
}

export const kernels = {
  ...{ product, embed, norm, normBack, turn, attend, along, attendBackQueries, attendBackKeys },
  ...{ gate, gateBack, fill, gather, spread, distribute, distributeBack, squares, update },
} as const

export type KernelName = keyof typeof kernels

/** What of a token kernels know: where it stands, where its key lies, where its path is listed, where what follows it ends. */
const structures = `
struct Token { position: u32, cell: u32, path: u32, end: u32 }
struct Row { wanted: i32, inverse: f32, goal: f32, topK: u32, topP: f32, minP: f32 }
struct Found { id: u32, logprob: f32, entropy: f32, sum: f32 }`

/** A kernel's whole text. */
export function shaderOf({ numbers, arrays, code }: Kernel): string {
  const fields = numbers.map(each => `${each.slice(2)}: ${each[0] === 'u' ? 'u32' : 'f32'}`)
  const bindings = arrays.map((each, index) => {
    const [, name, writes, type = 'f32'] = /^(\w+)(=?)(?::(\w+))?$/.exec(each)!
    const access = writes === '' ? 'read' : 'read_write'
    return `@group(0) @binding(${index + 1}) var<storage, ${access}> ${name}: array<${type}>;`
  })
  return [
    structures,
    `struct Numbers { ${fields.join(', ')} }`,
    '@group(0) @binding(0) var<uniform> p: Numbers;',
    ...bindings,
    code,
  ].join('\n')
}
