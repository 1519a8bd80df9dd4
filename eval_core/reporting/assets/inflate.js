"use strict";
// Unpacks the page's data. Browsers have had DecompressionStream since 2023; older ones get the few lines of inflate.
const inflate = (source) => {
  const BASES = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
  const EXTRA = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
  const FAR = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577];
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  let at = 2; // after the two bytes of the zlib header
  let held = 0;
  let count = 0;
  let out = new Uint8Array(source.length * 8);
  let size = 0;
  const bits = (wanted) => {
    while (count < wanted) {
      held |= source[at++] << count;
      count += 8;
    }
    const value = held & ((1 << wanted) - 1);
    held >>>= wanted;
    count -= wanted;
    return value;
  };
  const room = (more) => {
    if (size + more <= out.length) return;
    const larger = new Uint8Array(Math.max(out.length * 2, size + more));
    larger.set(out);
    out = larger;
  };
  const table = (lengths) => {
    const counts = new Uint16Array(16);
    for (const length of lengths) counts[length]++;
    counts[0] = 0;
    const starts = new Uint16Array(16);
    for (let length = 1; length < 16; length++) starts[length] = starts[length - 1] + counts[length - 1];
    const symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => {
      if (length) symbols[starts[length]++] = symbol;
    });
    return { counts, symbols };
  };
  const symbol = ({ counts, symbols }) => {
    let code = 0;
    let first = 0;
    let index = 0;
    for (let length = 1; length < 16; length++) {
      code |= bits(1);
      const found = counts[length];
      if (code - first < found) return symbols[index + code - first];
      index += found;
      first = (first + found) << 1;
      code <<= 1;
    }
    throw new Error("the page's data is damaged");
  };
  const fixed = () => {
    const lengths = Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8));
    return [table(lengths), table(new Array(30).fill(5))];
  };
  const dynamic = () => {
    const literals = bits(5) + 257;
    const distances = bits(5) + 1;
    const codes = bits(4) + 4;
    const lengths = new Array(19).fill(0);
    for (let index = 0; index < codes; index++) lengths[ORDER[index]] = bits(3);
    const meta = table(lengths);
    const all = [];
    while (all.length < literals + distances) {
      const value = symbol(meta);
      if (value < 16) all.push(value);
      else {
        const repeated = value === 16 ? all[all.length - 1] : 0;
        const times = value === 16 ? 3 + bits(2) : value === 17 ? 3 + bits(3) : 11 + bits(7);
        for (let time = 0; time < times; time++) all.push(repeated);
      }
    }
    return [table(all.slice(0, literals)), table(all.slice(literals))];
  };
  for (let last = 0; !last; ) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      held = count = 0;
      const length = source[at] | (source[at + 1] << 8);
      at += 4;
      room(length);
      out.set(source.subarray(at, at + length), size);
      at += length;
      size += length;
      continue;
    }
    const [near, far] = kind === 1 ? fixed() : dynamic();
    for (let value = symbol(near); value !== 256; value = symbol(near)) {
      if (value < 256) {
        room(1);
        out[size++] = value;
        continue;
      }
      const length = BASES[value - 257] + bits(EXTRA[value - 257]);
      const place = symbol(far);
      const back = FAR[place] + bits(place > 1 ? (place >> 1) - 1 : 0);
      room(length);
      for (let step = 0; step < length; step++, size++) out[size] = out[size - back];
    }
  }
  return out.subarray(0, size);
};

const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  let plain;
  if (typeof DecompressionStream === "function") {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    plain = new Uint8Array(await new Response(stream).arrayBuffer());
  } else {
    plain = inflate(bytes);
  }
  const { page, texts } = JSON.parse(new TextDecoder().decode(plain));
  // Long texts are stored once and referred to by number.
  const whole = (value) => {
    if (value === null || typeof value !== "object") return value;
    if (Array.isArray(value)) {
      for (let index = 0; index < value.length; index++) value[index] = whole(value[index]);
      return value;
    }
    const names = Object.keys(value);
    if (names.length === 1 && names[0] === "t") return texts[value.t];
    for (const name of names) value[name] = whole(value[name]);
    return value;
  };
  return whole(page);
};
