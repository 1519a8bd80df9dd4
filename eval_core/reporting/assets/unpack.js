"use strict";
// Unpacks the page's data.
const unpack = async (packed) => {
  const bytes = Uint8Array.from(atob(packed), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const plain = await new Response(stream).arrayBuffer();
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
