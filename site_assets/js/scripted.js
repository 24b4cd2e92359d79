// The theme's own script says this too, but only when the page stands, and then every element is styled anew.
document.documentElement.className = "js js-focus-visible";
